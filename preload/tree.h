#ifndef PRELOAD_TREE_H_
#define PRELOAD_TREE_H_

#include <string>
#include <vector>

#include "sim/device/device.h"

namespace weft::preload {

// Where the machine's own files are; tests use others.
struct Machine {
  std::string net = "/sys/class/net";
  std::string host_name;  // for node_desc
};

// Makes the directory `root` show, below root/sys and root/dev, what the Linux kernel shows about RDMA devices in /sys
// and /dev: /sys/class/infiniband, infiniband_verbs and misc/rdma_cm with the directories that they point to,
// /sys/class/net/IF/device/infiniband, and /dev/infiniband. Updates what is already there: each file is replaced as a
// whole, and only if it changes, so that other processes may read meanwhile. Writers must take turns. Returns false and
// sets errno if `root` cannot be written.
//
// Device nodes are empty regular files, since making real ones needs a privilege. They have the sticky bit, which
// nothing else below root has, and the device's number (dev_t) as their time of modification.
bool WriteTree(const std::string& root, const std::vector<sim::DeviceInfo>& devices, const Machine& machine);

}  // namespace weft::preload

#endif  // PRELOAD_TREE_H_
