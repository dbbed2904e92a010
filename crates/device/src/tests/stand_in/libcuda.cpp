// A stand-in for the CUDA driver, without a GPU. It records the order of function
// calls, keeps device memory in host memory, and runs the text of kernels,
// which is included as C++, block by block with the threads of a block as fibres.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <string>
#include <ucontext.h>
#include <utility>
#include <vector>

struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;

// Fibres: a thread runs until a barrier, then the next one does.
static ucontext_t scheduler;
static std::vector<ucontext_t> fibres;
static size_t current;
static void __syncthreads() { swapcontext(&fibres[current], &scheduler); }

#define __global__
#define __shared__ static
#define __restrict__
#define __launch_bounds__(...)
#include TEXT

struct Entry { const char *name; void *function; int arguments; int shared; };
static const Entry entries[] = { ENTRIES };

static std::string calls;
static std::string failing;
static int failure;
static std::map<uint64_t, size_t> memory;

static int note(const char *name) {
  calls += name;
  calls += '\n';
  return failing == name ? failure : 0;
}
#define NOTE() do { int code = note(__func__); if (code) return code; } while (0)

template <size_t... I> static void call(const Entry *entry, void **a, std::index_sequence<I...>) {
  auto pointer = [&](size_t i) { return *(void **)a[i]; };
  using Function = void (*)(decltype((void)I, (void *)0)...);
  ((Function)entry->function)(pointer(I)...);
}
static void call(const Entry *entry, void **a) {
  switch (entry->arguments) {
    case 3: return call(entry, a, std::make_index_sequence<3>());
    case 4: return call(entry, a, std::make_index_sequence<4>());
    case 5: return call(entry, a, std::make_index_sequence<5>());
    case 6: return call(entry, a, std::make_index_sequence<6>());
    default: abort();
  }
}

static const Entry *running;
static void **running_arguments;
static std::vector<bool> ended;
static std::vector<Index> ids;
static void run_fibre() {
  call(running, running_arguments);
  ended[current] = true;
}

static void run_block(const Entry *entry, void **arguments) {
  size_t threads = (size_t)blockDim.x * blockDim.y * blockDim.z, stack = 64 << 10;
  std::vector<char> stacks(threads * stack);
  fibres.assign(threads, ucontext_t());
  ended.assign(threads, false);
  running = entry;
  running_arguments = arguments;
  for (size_t i = 0; i < threads; i++) {
    getcontext(&fibres[i]);
    fibres[i].uc_stack.ss_sp = &stacks[i * stack];
    fibres[i].uc_stack.ss_size = stack;
    fibres[i].uc_link = &scheduler;
    makecontext(&fibres[i], run_fibre, 0);
  }
  for (bool any = true; any;) {
    any = false;
    for (current = 0; current < threads; current++) {
      if (ended[current]) continue;
      any = true;
      threadIdx = {unsigned(current % blockDim.x), unsigned(current / blockDim.x % blockDim.y),
                   unsigned(current / blockDim.x / blockDim.y)};
      swapcontext(&scheduler, &fibres[current]);
    }
  }
}

// Pending commands of foreign streams. They run when the stream is synchronized, so a
// missing wait leaves the results unwritten.
static const uintptr_t own_stream = 2;
static std::map<uintptr_t, std::vector<std::function<void()>>> pending;
static void flush(uintptr_t stream) {
  auto work = std::move(pending[stream]);
  pending.erase(stream);
  for (auto &one : work) one();
}
static void ask(void *stream, std::function<void()> work) {
  if ((uintptr_t)stream == own_stream) return work();
  pending[(uintptr_t)stream].push_back(work);
}

extern "C" {
size_t stand_in_pending(void *stream) {
  auto found = pending.find((uintptr_t)stream);
  return found == pending.end() ? 0 : found->second.size();
}
const char *stand_in_calls() { return calls.c_str(); }
void stand_in_forget() { calls.clear(); }
void stand_in_fail(const char *name, int code) { failing = name; failure = code; }
size_t stand_in_memory() { return memory.size(); }

int cuInit(unsigned) { NOTE(); return 0; }
int cuDriverGetVersion(int *version) { *version = 12090; return 0; }
int cuGetErrorName(int code, const char **name) {
  *name = code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : nullptr;
  return 0;
}
// NVIDIA's compiler asks a driver that is in the process for tables of its own.
int cuGetExportTable(const void **table, const void *) { *table = nullptr; return 500; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int) { *device = 0; return 0; }
int cuDeviceGetName(char *name, int room, int) { snprintf(name, room, "Stand-in"); return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = size_t(1) << 30; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
  static const std::map<int, int> values = {
      {1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, 49152}, {10, 32},
      {13, 1410000}, {16, 108}, {36, 1215000}, {37, 5120}, {38, 40 << 20}, {75, 8}, {76, 0}, {81, 164 << 10}, {82, 65536}};
  auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **context, int) { NOTE(); *context = (void *)1; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { NOTE(); return 0; }
int cuCtxSetCurrent(void *context) { return context == (void *)1 ? 0 : 201; }
int cuStreamCreate(void **stream, unsigned) { NOTE(); *stream = (void *)2; return 0; }
int cuStreamDestroy_v2(void *) { NOTE(); return 0; }
int cuStreamSynchronize(void *stream) { NOTE(); flush((uintptr_t)stream); return 0; }
// Polling is not recorded.
int cuStreamQuery(void *) { return failing == __func__ ? failure : 0; }
int cuModuleLoadData(void **module, const void *image) {
  NOTE();
  if (memcmp(image, "\177ELF", 4)) return 200;
  *module = (void *)3;
  return 0;
}
int cuModuleUnload(void *) { NOTE(); return 0; }
int cuModuleGetFunction(void **function, void *, const char *name) {
  for (const Entry &entry : entries)
    if (!strcmp(entry.name, name)) return *function = (void *)&entry, 0;
  return 500;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
  *value = attribute == 0 ? 1024 : attribute == 1 ? ((Entry *)function)->shared : 32;
  return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  NOTE();
  if (bytes > size_t(1) << 30) return 2;
  *address = (uint64_t)malloc(bytes);
  memory[*address] = bytes;
  return 0;
}
int cuMemFree_v2(uint64_t address) {
  NOTE();
  if (!memory.erase(address)) return 1;
  free((void *)address);
  return 0;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) { NOTE(); memcpy((void *)to, from, bytes); return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream) {
  NOTE();
  std::vector<char> copy((const char *)from, (const char *)from + bytes);
  ask(stream, [=] { memcpy((void *)to, copy.data(), copy.size()); });
  return 0;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) { NOTE(); memcpy(to, (void *)from, bytes); return 0; }
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **) {
  NOTE();
  if (shared) return 1;
  std::vector<void *> addresses;
  for (int i = 0; i < ((const Entry *)function)->arguments; i++) addresses.push_back(*(void **)arguments[i]);
  ask(stream, [=]() mutable {
    std::vector<void *> places;
    for (void *&address : addresses) places.push_back(&address);
    gridDim = {gx, gy, gz};
    blockDim = {bx, by, bz};
    for (blockIdx.z = 0; blockIdx.z < gz; blockIdx.z++)
      for (blockIdx.y = 0; blockIdx.y < gy; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < gx; blockIdx.x++) run_block((const Entry *)function, places.data());
  });
  return 0;
}
int cuEventCreate(void **event, unsigned) { *event = malloc(sizeof(timespec)); return 0; }
int cuEventDestroy_v2(void *event) { free(event); return 0; }
int cuEventRecord(void *event, void *) { NOTE(); clock_gettime(CLOCK_MONOTONIC, (timespec *)event); return 0; }
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  auto *a = (timespec *)start, *b = (timespec *)end;
  *milliseconds = (b->tv_sec - a->tv_sec) * 1e3f + (b->tv_nsec - a->tv_nsec) * 1e-6f;
  return 0;
}
}
