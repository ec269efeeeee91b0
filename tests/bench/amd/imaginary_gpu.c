// A library for LD_PRELOAD that shows RADV a GPU of AMD's that this machine does not have, so that it compiles kernels
// for it: HALFSTEP_AMD_GPU=navi21. Mesa before 26 needs no such thing (RADV_FORCE_FAMILY). It answers what libdrm asks
// the system for, and the kernel's interface as in amdgpu_drm.h. Nothing runs there: memory is the host's, a submit
// does nothing, and whatever is waited for has happened.
#define _GNU_SOURCE
#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <xf86drm.h>

// What compiling depends on, as the kernel reports it of a card with this chip. How images are tiled (GB_ADDR_CONFIG)
// must be valid, but no kernel of ours has images.
struct gpu {
  const char* name;
  uint32_t pci_id, family, external_revision;
  uint32_t version;          // of graphics and compute: major, minor, revision, a byte each
  uint32_t engines, arrays;  // shader engines, and arrays of each
  uint32_t units;            // compute units of an array
  uint32_t registers;        // vector registers of a SIMD, in subgroups of 32 (of 64 on vega10)
  uint32_t tiling;           // GB_ADDR_CONFIG
  uint64_t mebibytes;        // of memory
  uint64_t flags;            // AMDGPU_IDS_FLAGS_FUSION: no memory of its own
};
static const struct gpu gpus[] = {
    {"vega10", 0x687f, 141, 0x01, 0x090001, 4, 1, 16, 256, 0x2a114042, 8192, 0},
    {"navi21", 0x73bf, 143, 0x29, 0x0a0300, 4, 2, 10, 1024, 0x444, 16384, 0},
    {"navi31", 0x744c, 145, 0x01, 0x0b0000, 6, 2, 8, 1536, 0x545, 24576, 0},
    {"gfx1151", 0x1586, 150, 0xc1, 0x0b0501, 2, 2, 10, 1536, 0x343, 65536, AMDGPU_IDS_FLAGS_FUSION},
    {"gfx1201", 0x7550, 152, 0x51, 0x0c0001, 4, 2, 8, 1536, 0x545, 16384, 0},
};

#define RENDER_NODE "/dev/dri/renderD128"
enum { render_major = 226, render_minor = 128, page = 4096 };

static const struct gpu* chosen(void) {
  const char* name = getenv("HALFSTEP_AMD_GPU");
  if (name == NULL) return NULL;
  for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; ++i) {
    if (strcmp(gpus[i].name, name) == 0) return &gpus[i];
  }
  fprintf(stderr, "[imaginary_gpu] HALFSTEP_AMD_GPU: expected vega10, navi21, navi31, gfx1151 or gfx1201, got %s.\n",
          name);
  exit(2);
}

// --- The device's file: a file in memory, which buffers are parts of. A buffer's handle is its first page. ---

static atomic_uint next_page = 1;
static atomic_uint next_object = 1;  // contexts, lists, synchronization objects
static ino_t device_file;

static int open_device(void) {
  static int file = -1;
  struct stat status;
  if (file < 0) {
    file = memfd_create("imaginary_gpu", MFD_CLOEXEC);
    if (file < 0 || fstat(file, &status) != 0) return -1;
    device_file = status.st_ino;
  }
  return fcntl(file, F_DUPFD_CLOEXEC, 0);
}

static int is_device(int file) {
  struct stat status;
  return device_file != 0 && fstat(file, &status) == 0 && status.st_ino == device_file;
}

static int create_buffer(int file, union drm_amdgpu_gem_create* args) {
  const uint32_t pages = (uint32_t)((args->in.bo_size + page - 1) / page);
  const uint32_t first = atomic_fetch_add(&next_page, pages);
  struct stat status;
  const off_t end = (off_t)(first + pages) * page;
  if (fstat(file, &status) != 0 || (status.st_size < end && ftruncate(file, end) != 0)) return -1;
  memset(args, 0, sizeof *args);
  args->out.handle = first;
  return 0;
}

// --- What the kernel tells of the GPU ---

static struct drm_amdgpu_info_device device_info(const struct gpu* gpu) {
  struct drm_amdgpu_info_device info = {
      .device_id = gpu->pci_id,
      .external_rev = gpu->external_revision,
      .family = gpu->family,
      .num_shader_engines = gpu->engines,
      .num_shader_arrays_per_engine = gpu->arrays,
      .gpu_counter_freq = 100000,
      .max_engine_clock = 2000000,
      .max_memory_clock = 1000000,
      .cu_active_number = gpu->engines * gpu->arrays * gpu->units,
      .enabled_rb_pipes_mask = (1U << (gpu->engines * 4)) - 1,
      .num_rb_pipes = gpu->engines * 4,
      .num_hw_gfx_contexts = 8,
      .ids_flags = gpu->flags,
      .virtual_address_offset = 0x200000,
      .virtual_address_max = UINT64_C(0x800000000000),
      .virtual_address_alignment = page,
      .pte_fragment_size = 2097152,
      .gart_page_size = page,
      .vram_type = AMDGPU_VRAM_TYPE_GDDR6,
      .vram_bit_width = 256,
      .wave_front_size = gpu->family > 141 ? 32 : 64,
      .num_shader_visible_vgprs = gpu->registers,
      .num_cu_per_sh = gpu->units,
      .num_tcc_blocks = 16,
      .max_gs_waves_per_vgt = 32,
      .high_va_offset = UINT64_C(0xffff800000000000),
      .high_va_max = UINT64_C(0xffffffffffe00000),
  };
  // From the fifth on, engines follow in the columns that arrays leave.
  for (uint32_t engine = 0; engine < gpu->engines; ++engine) {
    for (uint32_t array = 0; array < gpu->arrays; ++array) {
      info.cu_bitmap[engine % 4][engine / 4 * 2 + array] = (1U << gpu->units) - 1;
    }
  }
  return info;
}

static struct drm_amdgpu_memory_info memory_info(const struct gpu* gpu) {
  const uint64_t bytes = gpu->mebibytes << 20;
  const struct drm_amdgpu_heap_info heap = {
      .total_heap_size = bytes, .usable_heap_size = bytes, .max_allocation = bytes};
  return (struct drm_amdgpu_memory_info){.vram = heap, .cpu_accessible_vram = heap, .gtt = heap};
}

static struct drm_amdgpu_info_hw_ip engine_info(const struct gpu* gpu, uint32_t type) {
  struct drm_amdgpu_info_hw_ip info = {
      .hw_ip_version_major = gpu->version >> 16,
      .hw_ip_version_minor = gpu->version >> 8 & 0xff,
      .ib_start_alignment = 32,
      .ib_size_alignment = 32,
      .available_rings = type == AMDGPU_HW_IP_GFX || type == AMDGPU_HW_IP_COMPUTE ? 1 : 0,
  };
  // The version, which older headers call padding.
  if (info.available_rings != 0) {
    memcpy((char*)&info + offsetof(struct drm_amdgpu_info_hw_ip, available_rings) + 4, &gpu->version, 4);
  }
  return info;
}

static void answer(const struct drm_amdgpu_info* question, const void* value, size_t bytes) {
  void* to = (void*)(uintptr_t)question->return_pointer;
  memset(to, 0, question->return_size);
  memcpy(to, value, bytes < question->return_size ? bytes : question->return_size);
}

static int query(const struct drm_amdgpu_info* question) {
  const struct gpu* gpu = chosen();
  const uint32_t working = 1;
  switch (question->query) {
    case AMDGPU_INFO_ACCEL_WORKING:
      answer(question, &working, sizeof working);
      return 0;
    case AMDGPU_INFO_DEV_INFO: {
      const struct drm_amdgpu_info_device info = device_info(gpu);
      answer(question, &info, sizeof info);
      return 0;
    }
    case AMDGPU_INFO_MEMORY: {
      const struct drm_amdgpu_memory_info info = memory_info(gpu);
      answer(question, &info, sizeof info);
      return 0;
    }
    case AMDGPU_INFO_HW_IP_INFO: {
      const struct drm_amdgpu_info_hw_ip info = engine_info(gpu, question->query_hw_ip.type);
      answer(question, &info, sizeof info);
      return 0;
    }
    case AMDGPU_INFO_HW_IP_COUNT: {
      const uint32_t count = engine_info(gpu, question->query_hw_ip.type).available_rings;
      answer(question, &count, sizeof count);
      return 0;
    }
    case AMDGPU_INFO_FW_VERSION: {
      const struct drm_amdgpu_info_firmware info = {.ver = 3000, .feature = 60};
      answer(question, &info, sizeof info);
      return 0;
    }
    case AMDGPU_INFO_READ_MMR_REG:
      answer(question, &gpu->tiling, sizeof gpu->tiling);
      return 0;
    default:
      answer(question, NULL, 0);
      return 0;
  }
}

// --- The kernel's calls. Those that return nothing succeed. ---

static void tell(const char* text, char* to, __kernel_size_t* length) {
  if (to != NULL) memcpy(to, text, strlen(text) < *length ? strlen(text) : *length);
  *length = strlen(text);
}

static int version(struct drm_version* to) {
  to->version_major = 3;
  to->version_minor = 64;
  tell("amdgpu", to->name, &to->name_len);
  tell("none", to->date, &to->date_len);
  tell("none", to->desc, &to->desc_len);
  return 0;
}

static int call(int file, unsigned number, void* args) {
  switch (number) {
    case _IOC_NR(DRM_IOCTL_VERSION):
      return version(args);
    case _IOC_NR(DRM_IOCTL_GET_CAP): {
      struct drm_get_cap* cap = args;
      cap->value = cap->capability == DRM_CAP_PRIME ? DRM_PRIME_CAP_IMPORT | DRM_PRIME_CAP_EXPORT : 1;
      return 0;
    }
    case _IOC_NR(DRM_IOCTL_GET_CLIENT):
      ((struct drm_client*)args)->auth = 1;
      return 0;
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_CREATE):
      ((struct drm_syncobj_create*)args)->handle = atomic_fetch_add(&next_object, 1);
      return 0;
    case _IOC_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD):
      ((struct drm_syncobj_handle*)args)->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
      return 0;
    case DRM_COMMAND_BASE + DRM_AMDGPU_INFO:
      return query(args);
    case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_CREATE:
      return create_buffer(file, args);
    case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP: {
      union drm_amdgpu_gem_mmap* map = args;
      map->out.addr_ptr = (uint64_t)map->in.handle * page;
      return 0;
    }
    case DRM_COMMAND_BASE + DRM_AMDGPU_CTX: {
      union drm_amdgpu_ctx* context = args;
      const int creates = context->in.op == AMDGPU_CTX_OP_ALLOC_CTX;
      memset(context, 0, sizeof *context);
      if (creates) context->out.alloc.ctx_id = atomic_fetch_add(&next_object, 1);
      return 0;
    }
    case DRM_COMMAND_BASE + DRM_AMDGPU_BO_LIST:
      ((union drm_amdgpu_bo_list*)args)->out.list_handle = atomic_fetch_add(&next_object, 1);
      return 0;
    case DRM_COMMAND_BASE + DRM_AMDGPU_CS:
      ((union drm_amdgpu_cs*)args)->out.handle = atomic_fetch_add(&next_object, 1);
      return 0;
    case DRM_COMMAND_BASE + DRM_AMDGPU_WAIT_CS:
      memset(args, 0, sizeof(union drm_amdgpu_wait_cs));
      return 0;
    case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_WAIT_IDLE:
      memset(args, 0, sizeof(union drm_amdgpu_gem_wait_idle));
      return 0;
    default:
      return 0;
  }
}

// --- What the driver and libdrm call instead of the system's ---

int ioctl(int file, unsigned long request, ...) {
  static int (*next)(int, unsigned long, void*);
  va_list list;
  va_start(list, request);
  void* args = va_arg(list, void*);
  va_end(list);
  if (_IOC_TYPE(request) == DRM_IOCTL_BASE && is_device(file)) return call(file, _IOC_NR(request), args);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "ioctl");
  return next(file, request, args);
}

int open64(const char* path, int flags, ...) {
  static int (*next)(const char*, int, mode_t);
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  if (strcmp(path, RENDER_NODE) == 0 && chosen() != NULL) return open_device();
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "open64");
  return next(path, flags, mode);
}

int stat64(const char* path, struct stat64* to) {
  static int (*next)(const char*, struct stat64*);
  if (strcmp(path, RENDER_NODE) == 0 && chosen() != NULL) {
    memset(to, 0, sizeof *to);
    to->st_mode = S_IFCHR;
    to->st_rdev = makedev(render_major, render_minor);
    return 0;
  }
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "stat64");
  return next(path, to);
}

static drmDevicePtr device(void) {
  static char none[] = "/dev/dri/none";
  static char node[] = RENDER_NODE;
  static char* nodes[DRM_NODE_MAX] = {none, none, node};
  static drmPciBusInfo bus = {.bus = 1};
  static drmPciDeviceInfo pci = {.vendor_id = 0x1002};
  static drmDevice all = {.nodes = nodes,
                          .available_nodes = 1 << DRM_NODE_RENDER,
                          .bustype = DRM_BUS_PCI,
                          .businfo.pci = &bus,
                          .deviceinfo.pci = &pci};
  pci.device_id = (uint16_t)chosen()->pci_id;
  return &all;
}

int drmGetDevices2(uint32_t flags, drmDevicePtr devices[], int most) {
  (void)flags;
  if (chosen() == NULL) return 0;
  if (devices != NULL && most > 0) devices[0] = device();
  return 1;
}

int drmGetDevice2(int file, uint32_t flags, drmDevicePtr* to) {
  (void)flags;
  if (!is_device(file)) return -ENODEV;
  *to = device();
  return 0;
}

void drmFreeDevice(drmDevicePtr* one) {
  *one = NULL;
}

void drmFreeDevices(drmDevicePtr devices[], int count) {
  memset(devices, 0, (size_t)count * sizeof devices[0]);
}

int drmGetNodeTypeFromFd(int file) {
  return is_device(file) ? DRM_NODE_RENDER : -1;
}

char* drmGetPrimaryDeviceNameFromFd(int file) {
  return is_device(file) ? strdup(RENDER_NODE) : NULL;
}
