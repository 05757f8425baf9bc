// Instead of libudev in the archive's mpiexec: its libhwloc.a asks udev about disks, and a machine without libudev has none to show.
#include <stddef.h>

#define HIDDEN __attribute__((visibility("hidden")))

// The calls that libhwloc makes (libudev.h): no udev, hence no device.
HIDDEN void* udev_new(void) { return NULL; }
HIDDEN void* udev_unref(void* udev) { return udev; }
HIDDEN void* udev_device_new_from_subsystem_sysname(void* udev, const char* subsystem, const char* name) { return NULL; }
HIDDEN void* udev_device_unref(void* device) { return NULL; }
HIDDEN const char* udev_device_get_property_value(void* device, const char* key) { return NULL; }
