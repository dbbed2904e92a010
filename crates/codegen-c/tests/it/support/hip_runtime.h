/* The part of AMD's headers that kernels need. Clang compiles texts with it, and nothing runs them. */
#ifndef HIP_SHIM_H
#define HIP_SHIM_H

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

struct Index3 {
    unsigned x, y, z;
};
#define threadIdx \
    (Index3{__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()})
#define blockIdx \
    (Index3{__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()})

static inline __device__ void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

static inline __device__ unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
static inline __device__ float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }

/* The functions of math.h that test kernels call and for which clang has instructions. */
static inline __device__ float expf(float x) { return __builtin_expf(x); }
static inline __device__ float fabsf(float x) { return __builtin_fabsf(x); }
static inline __device__ float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
static inline __device__ float fminf(float x, float y) { return __builtin_fminf(x, y); }

#endif
