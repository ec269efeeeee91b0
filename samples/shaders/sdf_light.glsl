const vec3 LIGHT = vec3(0.4558, 0.7293, 0.5105);
const float OCCLUSION_NEAR = 0.015;
const float OCCLUSION_FAR = 0.05;
