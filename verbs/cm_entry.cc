#include "sim/cm/api.h"
#include "sim/rnic.h"
#include "verbs/export.h"

// librdmacm's way to the RNIC, which is linked into this library only.
WEFT_VERBS_API weft::sim::CmApi* weft_private_cm_api(int version) {
  return version == weft::sim::CmApi::kVersion ? &weft::sim::Rnic::Process().cm() : nullptr;
}
