package live

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sysfs makes files below a folder that stands for /sys; "->" makes a link.
func sysfs(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, body := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(body, "->"); ok {
			target = filepath.Join(root, target)
			if err = os.MkdirAll(target, 0o755); err == nil {
				err = os.Symlink(target, name)
			}
		} else {
			err = os.WriteFile(name, []byte(body+"\n"), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func netdev(files map[string]string, name string, index, kind int, flags, state string) {
	at := "class/net/" + name + "/"
	files[at+"ifindex"] = fmt.Sprint(index)
	files[at+"type"] = fmt.Sprint(kind)
	files[at+"flags"] = flags
	files[at+"operstate"] = state
	files[at+"mtu"] = "9000"
}

// machine is one with an adapter of each kind.
func machine(t *testing.T) string {
	f := map[string]string{
		"class/infiniband/mlx5_0/hca_type":                     "MT4129",
		"class/infiniband/mlx5_0/node_desc":                    "host1 mlx5_0",
		"class/infiniband/mlx5_0/device/driver":                "->bus/pci/drivers/mlx5_core",
		"class/infiniband/mlx5_0/device/net/eth1/ifindex":      "3",
		"class/infiniband/mlx5_0/ports/1/link_layer":           "Ethernet",
		"class/infiniband/mlx5_0/ports/1/state":                "4: ACTIVE",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0":    "eth1",
		"class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/1":    "eth1.100",
		"class/infiniband/mlx5_1/hca_type":                     "MT4129",
		"class/infiniband/mlx5_1/device/driver":                "->bus/pci/drivers/mlx5_core",
		"class/infiniband/mlx5_1/device/net/ib0/ifindex":       "6",
		"class/infiniband/mlx5_1/ports/1/link_layer":           "InfiniBand",
		"class/infiniband/mlx5_1/ports/1/state":                "1: DOWN",
		"class/infiniband/rxe0/node_desc":                      "rxe",
		"class/infiniband/rxe0/parent":                         "eth0",
		"class/infiniband/rxe0/ports/1/link_layer":             "Ethernet",
		"class/infiniband/rxe0/ports/1/state":                  "4: ACTIVE",
		"class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0":      "eth0",
		"class/infiniband/siw_eth2/node_desc":                  "Software iWARP stack",
		"class/infiniband/siw_eth2/device/driver":              "->bus/pci/drivers/e1000e",
		"class/infiniband/siw_eth2/ports/1/link_layer":         "Ethernet",
		"class/infiniband/irdma0/board_id":                     "x",
		"class/infiniband/irdma0/ports/1/gid_attrs/ndevs/0":    "eth2",
		"class/net/bonding_masters":                            "bond0",
		"class/infiniband/irdma0/device/driver":                "->bus/auxiliary/drivers/irdma",
		"class/infiniband/irdma0/device/net-not-there/ifindex": "1",
	}
	netdev(f, "lo", 1, 772, "0x9", "unknown")
	netdev(f, "eth0", 2, 1, "0x1003", "up")
	netdev(f, "eth1", 3, 1, "0x1003", "up")
	netdev(f, "eth1.100", 4, 1, "0x1003", "up")
	netdev(f, "eth2", 5, 1, "0x1003", "down")
	netdev(f, "ib0", 6, 32, "0x1002", "down")
	netdev(f, "wg0", 7, 65534, "0x91", "unknown")
	netdev(f, "odd", 8, 4242, "0x91", "unknown")
	return sysfs(t, f)
}

func TestRDMADevices(t *testing.T) {
	var got []string
	for _, d := range RDMADevices(machine(t)) {
		got = append(got, fmt.Sprintf("%s %s %v %s %s %v", d.Name, d.Driver, d.Software, d.Link, d.State, d.Interfaces))
	}
	want := []string{
		"irdma0 irdma false   [eth2]",
		"mlx5_0 mlx5_core false Ethernet ACTIVE [eth1 eth1.100]",
		"mlx5_1 mlx5_core false InfiniBand DOWN [ib0]",
		"rxe0 rxe true Ethernet ACTIVE [eth0]",
		"siw_eth2 siw true Ethernet  [eth2]",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if RDMADevices(t.TempDir()) != nil {
		t.Error("devices from nowhere")
	}
}

func TestInterfaces(t *testing.T) {
	list, err := Interfaces(machine(t))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range list {
		var rdma []string
		for _, d := range i.RDMA {
			rdma = append(rdma, d.Name)
		}
		got = append(got, fmt.Sprintf("%d %s %s %v %s %d %v", i.Index, i.Name, i.Kind, i.Up, i.State, i.MTU, rdma))
	}
	want := []string{
		"1 lo loopback true unknown 9000 []",
		"2 eth0 ethernet true up 9000 [rxe0]",
		"3 eth1 ethernet true up 9000 [mlx5_0]",
		"4 eth1.100 ethernet true up 9000 [mlx5_0]",
		"5 eth2 ethernet true down 9000 [irdma0 siw_eth2]",
		"6 ib0 infiniband false down 9000 [mlx5_1]",
		"7 wg0 none true unknown 9000 []",
		"8 odd type 4242 true unknown 9000 []",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if _, err := Interfaces(t.TempDir()); err == nil {
		t.Error("no sysfs, no error")
	}
}

// What cannot be seen is told, with ways out; software is no reason to.
func TestHidden(t *testing.T) {
	sys := machine(t)
	for iface, want := range map[string][]string{
		"eth0":     nil,
		"lo":       nil,
		"eth1":     {"mlx5_0 (mlx5_core) bypasses the kernel", "tcpdump -i mlx5_0 -w - | rpcrdma-dump -", "ibdump -d mlx5_0", "mirror of the switch port, on an interface without RDMA"},
		"eth1.100": {"mlx5_0"},
		"ib0":      {"mlx5_1", "tcpdump -i mlx5_1"},
		"eth2":     {"irdma0 (irdma)"},
	} {
		got := strings.Join(Hidden(sys, iface), "\n")
		if (got == "") != (want == nil) {
			t.Errorf("%s: %s", iface, got)
		}
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", iface, w, got)
			}
		}
	}
	if n := len(Hidden(sys, "any")); n != 3 {
		t.Errorf("any hides %d devices", n)
	}
	if s := Hidden(sys, "eth2")[0]; strings.Contains(s, "ibdump") {
		t.Errorf("ibdump is for adapters of one vendor:\n%s", s)
	}
}

// The name of an RDMA device is not that of an interface.
func TestDeviceName(t *testing.T) {
	sys := machine(t)
	for name, want := range map[string]string{
		"rxe0":     "in software (rxe); its packets pass through eth0: capture there",
		"mlx5_0":   "tcpdump -i mlx5_0 -w - | rpcrdma-dump -",
		"siw_eth2": "pass through eth2",
	} {
		if d := findRDMA(sys, name); d == nil || !strings.Contains(d.explain(), want) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if findRDMA(sys, "eth0") != nil {
		t.Error("eth0 is no RDMA device")
	}
}
