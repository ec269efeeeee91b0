// A box with a light in its ceiling, two blocks and a ball, all diffuse: the unit cube, open towards the camera.
const vec3 LIGHT_CENTRE = vec3(0.5, 0.999, 0.45);
const vec2 LIGHT_HALF = vec2(0.14, 0.12);
const float LIGHT_RADIANCE = 15.0;
const vec4 BALL = vec4(0.70, 0.13, 0.74, 0.13);

struct Hit {
  float at;  // the ray's length; none where it is above 1e8
  vec3 normal;
  vec3 albedo;
  bool light;
};

struct Block {
  vec3 centre;
  vec3 half_size;
  vec2 turn;  // cosine and sine about the vertical axis
};
const Block TALL = Block(vec3(0.31, 0.32, 0.34), vec3(0.14, 0.32, 0.14), vec2(0.940, 0.342));
const Block SHORT = Block(vec3(0.70, 0.15, 0.40), vec3(0.14, 0.15, 0.14), vec2(0.951, -0.309));

vec3 turned(vec3 v, vec2 turn) { return vec3(turn.x * v.x - turn.y * v.z, v.y, turn.y * v.x + turn.x * v.z); }
vec3 turned_back(vec3 v, vec2 turn) { return turned(v, vec2(turn.x, -turn.y)); }

void keep(inout Hit hit, float at, vec3 normal, vec3 albedo, bool light) {
  if (at > 1e-4 && at < hit.at) hit = Hit(at, normal, albedo, light);
}

void hit_wall(inout Hit hit, vec3 origin, vec3 direction, vec3 normal, float offset, vec3 albedo, bool light) {
  float along = dot(direction, normal);
  if (along >= 0.0) return;  // from behind
  float at = (offset - dot(origin, normal)) / along;
  if (light) {
    vec3 p = origin + at * direction - LIGHT_CENTRE;
    if (abs(p.x) > LIGHT_HALF.x || abs(p.z) > LIGHT_HALF.y) return;
  } else {
    vec3 p = abs(origin + at * direction - 0.5);
    if (max(p.x, max(p.y, p.z)) > 0.5001) return;
  }
  keep(hit, at, normal, albedo, light);
}

void hit_block(inout Hit hit, vec3 origin, vec3 direction, Block block, vec3 albedo) {
  vec3 o = turned(origin - block.centre, block.turn);
  vec3 d = turned(direction, block.turn);
  vec3 inverse = 1.0 / mix(d, vec3(1e-9), lessThan(abs(d), vec3(1e-9)));
  vec3 near = -o * inverse - abs(inverse) * block.half_size;
  vec3 far = -o * inverse + abs(inverse) * block.half_size;
  float enter = max(near.x, max(near.y, near.z));
  if (enter >= min(far.x, min(far.y, far.z)) || enter <= 1e-4) return;
  vec3 face = vec3(equal(near, vec3(enter)));
  keep(hit, enter, turned_back(-sign(d) * face, block.turn), albedo, false);
}

void hit_ball(inout Hit hit, vec3 origin, vec3 direction, vec4 ball, vec3 albedo) {
  vec3 o = origin - ball.xyz;
  float b = dot(o, direction);
  float inside = b * b - dot(o, o) + ball.w * ball.w;
  if (inside <= 0.0) return;
  float at = -b - sqrt(inside);
  keep(hit, at, (o + at * direction) / ball.w, albedo, false);
}

void hit_things(inout Hit hit, vec3 origin, vec3 direction) {
  hit_block(hit, origin, direction, TALL, vec3(0.73));
  hit_block(hit, origin, direction, SHORT, vec3(0.72, 0.62, 0.30));
  hit_ball(hit, origin, direction, BALL, vec3(0.35, 0.45, 0.78));
}

Hit first_hit(vec3 origin, vec3 direction) {
  Hit hit = Hit(1e9, vec3(0.0), vec3(0.0), false);
  hit_wall(hit, origin, direction, vec3(1.0, 0.0, 0.0), 0.0, vec3(0.66, 0.06, 0.05), false);
  hit_wall(hit, origin, direction, vec3(-1.0, 0.0, 0.0), -1.0, vec3(0.12, 0.48, 0.10), false);
  hit_wall(hit, origin, direction, vec3(0.0, 1.0, 0.0), 0.0, vec3(0.73), false);
  hit_wall(hit, origin, direction, vec3(0.0, -1.0, 0.0), -1.0, vec3(0.73), false);
  hit_wall(hit, origin, direction, vec3(0.0, 0.0, 1.0), 0.0, vec3(0.73), false);
  hit_wall(hit, origin, direction, vec3(0.0, -1.0, 0.0), -LIGHT_CENTRE.y, vec3(0.0), true);
  hit_things(hit, origin, direction);
  return hit;
}

// The light that a point receives straight from the lamp, seen at the lamp's point `at` in [0, 1]^2; to be multiplied
// by its albedo.
float from_lamp(vec3 position, vec3 normal, vec2 at) {
  vec2 offset = (2.0 * at - 1.0) * LIGHT_HALF;
  vec3 way = LIGHT_CENTRE + vec3(offset.x, 0.0, offset.y) - position;
  float distance = length(way);
  vec3 direction = way / distance;
  float cosines = dot(normal, direction) * direction.y;
  if (dot(normal, direction) <= 0.0 || direction.y <= 0.0) return 0.0;
  Hit between = Hit(distance - 1e-3, vec3(0.0), vec3(0.0), true);
  hit_things(between, position + 1e-4 * normal, direction);
  if (!between.light) return 0.0;
  return LIGHT_RADIANCE * cosines * 4.0 * LIGHT_HALF.x * LIGHT_HALF.y / (3.14159265 * distance * distance);
}
