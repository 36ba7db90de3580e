package live

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// RDMADevice is an RDMA device as sysfs shows it.
type RDMADevice struct {
	Name   string // mlx5_0, rxe0
	Driver string // mlx5_core, rxe, siw; empty if unknown
	// Software means that the kernel makes its packets and sends them through a network interface, where they
	// can be captured: Soft-RoCE and Soft-iWARP.
	Software bool
	// Link is "Ethernet" or "InfiniBand", of the first port.
	Link string
	// State of the first port: "ACTIVE", "DOWN", …
	State string
	// Interfaces are the network interfaces that belong to it.
	Interfaces []string
}

// Bounds on what is read of sysfs.
const (
	maxDevices = 256
	maxGIDs    = 1024
)

// RDMADevices lists the RDMA devices below a mount of sysfs, "/sys" usually.
func RDMADevices(sys string) []RDMADevice {
	dir := filepath.Join(sys, "class/infiniband")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // no RDMA here
	}
	var list []RDMADevice
	for _, e := range entries[:min(len(entries), maxDevices)] {
		list = append(list, readDevice(filepath.Join(dir, e.Name())))
	}
	return list
}

func readDevice(dir string) RDMADevice {
	d := RDMADevice{Name: filepath.Base(dir)}
	parent := line(filepath.Join(dir, "parent")) // of rxe: its interface
	desc := line(filepath.Join(dir, "node_desc"))
	hardware := exists(filepath.Join(dir, "hca_type")) || exists(filepath.Join(dir, "board_id"))
	switch {
	case parent != "" || desc == "rxe" || !hardware && strings.HasPrefix(d.Name, "rxe"):
		d.Driver, d.Software = "rxe", true
	case desc == "Software iWARP stack" || !hardware && strings.HasPrefix(d.Name, "siw"):
		// Of siw, device may be that of the adapter below.
		d.Driver, d.Software = "siw", true
	default:
		if target, err := filepath.EvalSymlinks(filepath.Join(dir, "device/driver")); err == nil {
			d.Driver = filepath.Base(target)
		}
	}
	add := func(name string) {
		if name != "" && !slices.Contains(d.Interfaces, name) {
			d.Interfaces = append(d.Interfaces, name)
		}
	}
	add(parent)
	if !d.Software {
		for _, n := range list(filepath.Join(dir, "device/net"), maxDevices) {
			add(n)
		}
	}
	for _, port := range list(filepath.Join(dir, "ports"), maxDevices) {
		p := filepath.Join(dir, "ports", port)
		if d.Link == "" {
			d.Link = line(filepath.Join(p, "link_layer"))
			_, d.State, _ = strings.Cut(line(filepath.Join(p, "state")), ": ")
		}
		// The interface of each GID; it cannot be read where there is none.
		ndevs := filepath.Join(p, "gid_attrs/ndevs")
		for _, gid := range list(ndevs, maxGIDs) {
			add(line(filepath.Join(ndevs, gid)))
		}
	}
	if d.Software && d.Driver == "siw" && len(d.Interfaces) == 0 {
		// Older kernels name the interface only in the default name of the device.
		if rest, ok := strings.CutPrefix(d.Name, "siw_"); ok {
			add(rest)
		}
	}
	return d
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func list(dir string, most int) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), most)] {
		names = append(names, e.Name())
	}
	return names
}

// line is the text of a small file.
func line(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[:min(len(b), 256)]))
}

// findRDMA returns the RDMA device of a name.
func findRDMA(sys, name string) *RDMADevice {
	for _, d := range RDMADevices(sys) {
		if d.Name == name {
			return &d
		}
	}
	return nil
}

// explain says why an RDMA device cannot be captured on by its name, and what to do instead.
func (d *RDMADevice) explain() string {
	if d.Software {
		on := "its network interface"
		if len(d.Interfaces) > 0 {
			on = strings.Join(d.Interfaces, " or ")
		}
		return fmt.Sprintf("this is an RDMA device in software (%s); its packets pass through %s: capture there", d.Driver, on)
	}
	return "this is an RDMA device, not a network interface, and the kernel does not see its packets\n" + d.waysOut()
}

// waysOut are ways to capture what an adapter sends without the kernel.
func (d *RDMADevice) waysOut() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  the kernel's own events of its NFS calls, on any adapter: -i trace\n  ways to capture the packets:\n")
	fmt.Fprintf(&b, "    sniffer of the adapter (libpcap built with RDMA support): tcpdump -i %s -w - | rpcrdma-dump -\n", d.Name)
	if strings.HasPrefix(d.Driver, "mlx") {
		fmt.Fprintf(&b, "    ibdump -d %s -w trace.pcap, then rpcrdma-dump trace.pcap\n", d.Name)
	}
	if d.Link == "InfiniBand" {
		fmt.Fprintf(&b, "    a mirror of the switch port, on an adapter that can receive it")
	} else {
		fmt.Fprintf(&b, "    a mirror of the switch port, on an interface without RDMA of this or another machine: rpcrdma-dump capture -p -i IFACE")
	}
	return b.String()
}

// Hidden reports RDMA adapters whose traffic does not pass through the kernel, so that a capture on the
// interface cannot show it. For "any", all adapters count. sys is the mount of sysfs.
func Hidden(sys, iface string) []string {
	var notes []string
	for _, d := range RDMADevices(sys) {
		if d.Software || iface != "any" && !slices.Contains(d.Interfaces, iface) {
			continue
		}
		driver := ""
		if d.Driver != "" {
			driver = " (" + d.Driver + ")"
		}
		notes = append(notes, fmt.Sprintf("%s: the RDMA traffic of the adapter %s%s bypasses the kernel and will not be seen here\n%s", iface, d.Name, driver, d.waysOut()))
	}
	return notes
}

// Interface is a network interface.
type Interface struct {
	Name  string
	Index int
	Kind  string // "ethernet", "loopback", "infiniband", …
	Up    bool
	State string // "up", "down", "unknown", …: of the link, as the kernel puts it
	MTU   int
	RDMA  []RDMADevice
}

// kinds are names of link types (linux/if_arp.h).
var kinds = map[uint64]string{
	1: "ethernet", 32: "infiniband", 256: "slip", 512: "ppp", 768: "tunnel", 769: "tunnel6", 772: "loopback", 776: "sit", 778: "gre",
	801: "wifi", 803: "wifi-monitor", 65534: "none",
}

// maxInterfaces bounds a listing.
const maxInterfaces = 4096

// Interfaces lists the network interfaces below a mount of sysfs.
func Interfaces(sys string) ([]Interface, error) {
	dir := filepath.Join(sys, "class/net")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	devices := RDMADevices(sys)
	var out []Interface
	for _, e := range entries[:min(len(entries), maxInterfaces)] {
		at := filepath.Join(dir, e.Name())
		if !exists(filepath.Join(at, "ifindex")) {
			continue // bonding_masters
		}
		flags, _ := strconv.ParseUint(line(filepath.Join(at, "flags")), 0, 32)
		i := Interface{
			Name: e.Name(), Index: int(sysNumber(sys, e.Name(), "ifindex")), MTU: int(sysNumber(sys, e.Name(), "mtu")),
			Up: flags&1 != 0, State: line(filepath.Join(at, "operstate")),
		}
		t := sysNumber(sys, e.Name(), "type")
		if i.Kind = kinds[t]; i.Kind == "" {
			i.Kind = "type " + strconv.FormatUint(t, 10)
		}
		for _, d := range devices {
			if slices.Contains(d.Interfaces, i.Name) {
				i.RDMA = append(i.RDMA, d)
			}
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b Interface) int { return a.Index - b.Index })
	return out, nil
}

// sysNumber reads a number of an interface; 0 if there is none.
func sysNumber(sys, iface, file string) uint64 {
	n, _ := strconv.ParseUint(line(filepath.Join(sys, "class/net", iface, file)), 10, 64)
	return n
}
