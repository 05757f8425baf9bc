#ifndef PRELOAD_TREE_H_
#define PRELOAD_TREE_H_

#include <string>
#include <vector>

#include "sim/device/device.h"

namespace weft::preload {

// Where the machine's own files are; tests have others.
struct Machine {
  std::string net = "/sys/class/net";
  std::string host_name;  // for node_desc
};

// Makes the directory `root` show, below root/sys and root/dev, what the Linux kernel shows of RDMA devices in /sys and /dev:
// /sys/class/infiniband, infiniband_verbs and misc/rdma_cm with the directories that they point at, /sys/class/net/IF/device/infiniband,
// and /dev/infiniband. What is there already is brought up to date: each file is replaced as a whole, and only when it changes, so that
// others may read meanwhile; writers must take turns. False with errno when `root` cannot be written.
//
// Device nodes are empty regular files with the sticky bit, which nothing else below root has, and the device's number (dev_t) as their
// time of modification: making real ones takes a privilege.
bool WriteTree(const std::string& root, const std::vector<sim::DeviceInfo>& devices, const Machine& machine);

}  // namespace weft::preload

#endif  // PRELOAD_TREE_H_
