// Ids in rows of ID_COLUMNS, numbered without their padding.
layout(constant_id = 1) const uint ID_COLUMNS = 1u;
layout(constant_id = 2) const uint ID_PITCH = 4u;

const uint IGNORED_ID = 0xffffffffu;

uint place_of_id(uint i) { return i / ID_COLUMNS * ID_PITCH + i % ID_COLUMNS; }
