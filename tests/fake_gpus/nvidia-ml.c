/* The same two H200 in the words of NVML, which counts them the other way round: 4 NVLinks each, three to a switch and one
   whose far end is hidden. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define GPUS 2
#define LINKS 4

struct gpu {
  const char* uuid;
  unsigned bus;
};
static struct gpu gpus[GPUS] = {{"GPU-0b0b0b0b-0b0b-0b0b-0b0b-0b0b0b0b0b0b", 11},
                                {"GPU-0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a", 10}};

struct pci {
  char short_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

struct field {
  unsigned field, scope;
  long long timestamp, latency_us;
  int type, result;
  unsigned long long value;
};

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int error) { return error == 0 ? "success" : "failure"; }

int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  snprintf(text, bytes, "580.1.2");
  return 0;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, struct gpu** device) {
  for (int i = 0; i < GPUS; ++i) {
    if (strcmp(uuid, gpus[i].uuid) != 0) continue;
    *device = &gpus[i];
    return 0;
  }
  return 6;
}

int nvmlDeviceGetPciInfo_v3(struct gpu* device, struct pci* pci) {
  memset(pci, 0, sizeof *pci);
  pci->bus = device->bus;
  return 0;
}

int nvmlDeviceGetNvLinkState(struct gpu* device, unsigned link, int* active) {
  (void)device;
  *active = link < LINKS;
  return link < LINKS ? 0 : 2;
}

int nvmlDeviceGetNvLinkVersion(struct gpu* device, unsigned link, unsigned* version) {
  (void)device, (void)link;
  *version = 4;
  return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu* device, unsigned link, int* type) {
  (void)device;
  *type = 2; /* a switch */
  return link == LINKS - 1 ? 3 : 0;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu* device, unsigned link, struct pci* pci) {
  (void)device, (void)link, (void)pci;
  return 3;
}

int nvmlDeviceGetFieldValues(struct gpu* device, int count, struct field* fields) {
  (void)device;
  for (int i = 0; i < count; ++i) {
    fields[i].result = fields[i].field == 90 ? 0 : 3;
    fields[i].value = 26562;
  }
  return 0;
}

int nvmlDeviceGetP2PStatus(struct gpu* from, struct gpu* to, int index, int* status) {
  *status = index == 2 && from != to ? 0 : 3;
  return 0;
}

int nvmlDeviceGetTopologyCommonAncestor(struct gpu* from, struct gpu* to, int* level) {
  (void)from, (void)to;
  *level = 50;
  return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(struct gpu* device, unsigned* value) {
  (void)device;
  *value = 1;
  return 0;
}

int nvmlDeviceGetCurrPcieLinkWidth(struct gpu* device, unsigned* value) {
  (void)device;
  *value = 16;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkGeneration(struct gpu* device, unsigned* value) {
  (void)device;
  *value = 5;
  return 0;
}

int nvmlDeviceGetMaxPcieLinkWidth(struct gpu* device, unsigned* value) {
  (void)device;
  *value = 16;
  return 0;
}
