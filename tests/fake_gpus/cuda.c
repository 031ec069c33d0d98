/* Two H200 in the words of the CUDA driver. FAKE_CUDA_ERROR makes cuInit fail with that code. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS 2

int cuInit(unsigned flags) {
  const char* error = getenv("FAKE_CUDA_ERROR");
  (void)flags;
  return error == NULL ? 0 : atoi(error);
}

int cuGetErrorString(int error, const char** text) {
  *text = error == 100 ? "no CUDA-capable device is detected" : NULL;
  return *text == NULL;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = GPUS;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = 10 + index; /* a handle, not the index */
  return index < 0 || index >= GPUS;
}

int cuDeviceGetName(char* name, int bytes, int device) {
  (void)device;
  snprintf(name, (size_t)bytes, "NVIDIA H200");
  return 0;
}

int cuDeviceGetUuid_v2(void* uuid, int device) {
  memset(uuid, device, 16);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)141 << 30;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case 16: /* multiprocessors */
      *value = 132;
      return 0;
    case 40: /* copy engines */
      *value = 3;
      return 0;
    case 75: /* sm_90 */
      *value = 9;
      return 0;
    case 76:
      *value = 0;
      return 0;
    case 103: /* posix handles, fabric handles, multicast */
    case 128:
    case 132:
      *value = 1;
      return 0;
  }
  return 1;
}

int cuDeviceGetPCIBusId(char* id, int bytes, int device) {
  snprintf(id, (size_t)bytes, "0000:%02X:00.0", device);
  return 0;
}

int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer;
  return 0;
}

/* Atomic operations work in one direction alone, which no real pair does, so that a mix-up of the two shows. */
int cuDeviceGetP2PAttribute(int* value, int attribute, int device, int peer) {
  *value = attribute == 3 && device < peer;
  return 0;
}
