// Uses the installed C interface: describes each device.
#include <halfstep.h>
#include <stdio.h>

int main(void) {
  uint32_t count = 0;
  hs_status status = hs_device_count(&count);
  for (uint32_t i = 0; i < count && !status; i++) {
    hs_device_info info = {.size = sizeof info};
    status = hs_device_describe(i, &info);
    printf("%s\n", info.name);
  }
  if (status) fprintf(stderr, "%s\n", hs_error_text());
  return status != HS_OK || count == 0;
}
