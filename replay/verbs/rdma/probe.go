//go:build verbs && cgo && linux

package rdma

/*
#cgo LDFLAGS: -ldl
#include "lib.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unsafe"
)

// load loads both libraries, and says how to get what is missing.
func load() error {
	var why [512]C.char
	if C.rc_load(&why[0], C.size_t(len(why))) != 0 {
		return fmt.Errorf("rdma: %s (Debian packages libibverbs1, librdmacm1 and ibverbs-providers; elsewhere rdma-core)", C.GoString(&why[0]))
	}
	return nil
}

// errno is the error of a C function of lib.h; nil for counts and 0.
func errno(op string, rc C.int) error {
	if rc >= 0 {
		return nil
	}
	return fmt.Errorf("rdma: %s: %w", op, syscall.Errno(-rc))
}

// Probe looks for what the provider needs, and for devices.
func Probe() Report {
	r := Report{Built: true}
	if err := load(); err != nil {
		r.Missing = err.Error()
		return r
	}
	devices, err := devices()
	r.Devices = devices
	if err == nil {
		return r
	}
	r.Missing = err.Error()
	return r
}

// devices returns the devices of the connection manager. It is an error if there are none.
func devices() ([]Device, error) {
	var names [1024]C.char
	n := C.rc_device_names(&names[0], C.size_t(len(names)))
	switch {
	case n == -C.int(syscall.ENOSYS):
		return nil, fmt.Errorf("rdma: the kernel has no RDMA devices (module ib_uverbs is not loaded)")
	case n < 0:
		return nil, errno("looking for devices", n)
	case n == 0:
		return nil, fmt.Errorf("rdma: no RDMA device (soft ones are made with: rdma link add rxe0 type rxe netdev INTERFACE)")
	}
	if _, err := os.Stat("/dev/infiniband/rdma_cm"); err != nil {
		return nil, fmt.Errorf("rdma: there are devices (%s) but not /dev/infiniband/rdma_cm (module rdma_ucm is not loaded)", C.GoString(&names[0]))
	}
	var list [32]C.struct_rc_device
	n = C.rc_devices(&list[0], C.int(len(list)))
	if n < 0 {
		return nil, errno(fmt.Sprintf("opening the devices %s", C.GoString(&names[0])), n)
	}
	var out []Device
	for i := range min(int(n), len(list)) {
		if list[i].ctx != nil {
			out = append(out, describe(&list[i]))
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("rdma: none of the devices %s can be used", C.GoString(&names[0]))
	}
	return out, nil
}

func describe(d *C.struct_rc_device) Device {
	x := Device{
		Name:       C.GoString(&d.name[0]),
		Fabric:     fabric(d, -1),
		Active:     d.port_state == C.IBV_PORT_ACTIVE,
		MTU:        int(d.active_mtu),
		Windows:    d.fw_windows != 0 && d.max_mw > 0,
		MaxReads:   int(min(d.max_rd_atom, d.max_init_rd_atom, 255)),
		MaxSGE:     int(d.max_sge),
		MaxReadSG:  int(max(d.max_sge_rd, 1)),
		Vendor:     uint32(d.vendor),
		MaxMessage: uint64(d.max_msg),
	}
	// The kernel names the interface of each entry of the address table.
	files, _ := filepath.Glob("/sys/class/infiniband/" + x.Name + "/ports/*/gid_attrs/ndevs/*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if name := strings.TrimSpace(string(b)); err == nil && name != "" && !slices.Contains(x.Netdevs, name) {
			x.Netdevs = append(x.Netdevs, name)
		}
	}
	return x
}

// fabric returns the fabric of a device; gid is the index of the address in use, which
// decides between the versions of RoCE, or -1.
func fabric(d *C.struct_rc_device, gid int) string {
	switch {
	case d.transport == C.IBV_TRANSPORT_IWARP:
		return "iwarp"
	case d.link_layer != C.IBV_LINK_LAYER_ETHERNET:
		return "infiniband"
	case gid >= 0:
		b, err := os.ReadFile(fmt.Sprintf("/sys/class/infiniband/%s/ports/1/gid_attrs/types/%d", C.GoString(&d.name[0]), gid))
		if err == nil && strings.TrimSpace(string(b)) == "IB/RoCE v1" {
			return "rocev1"
		}
	}
	return "rocev2"
}

// bytes is Go's view of C's private data.
func bytes(p *C.uint8_t, n int) []byte {
	if n == 0 {
		return nil
	}
	return C.GoBytes(unsafe.Pointer(p), C.int(n))
}
