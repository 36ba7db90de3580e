package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/internal/table"
)

// Interfaces is the flag -D: list the network interfaces instead of doing what the
// command does.
type Interfaces struct {
	Wanted bool
	sys    string
}

// Flag defines -D, --list-interfaces.
func (i *Interfaces) Flag(f *pflag.FlagSet) {
	f.BoolVarP(&i.Wanted, "list-interfaces", "D", false, "list the network interfaces and what can be seen on them, and exit")
	f.StringVar(&i.sys, "sysfs", "/sys", "")
	_ = f.MarkHidden("sysfs")
}

// List prints the network interfaces and the RDMA devices, and where the traffic
// of these can be seen.
func (i *Interfaces) List(w io.Writer) error { return listInterfaces(w, i.sys) }

func listInterfaces(w io.Writer, sys string) error {
	list, err := live.Interfaces(sys)
	if err != nil {
		return fmt.Errorf("listing network interfaces: %w", err)
	}
	var rows [][]string
	for _, i := range list {
		state := "down"
		if i.Up {
			if state = "up"; i.State == "down" || i.State == "lowerlayerdown" || i.State == "dormant" {
				state = "up, no link"
			}
		}
		rows = append(rows, []string{text.SafeString(i.Name), i.Kind, state, strconv.Itoa(i.MTU), rdmaOf(i.RDMA), seen(i.RDMA)})
	}
	if err := table.Print(w, []string{"INTERFACE", "LINK", "STATE", "MTU", "RDMA", "RDMA TRAFFIC"}, []bool{false, false, false, true, false, false}, rows); err != nil {
		return err
	}
	devices := live.RDMADevices(sys)
	if len(devices) == 0 {
		return nil
	}
	rows = rows[:0]
	for _, d := range devices {
		how := "capture -i trace"
		if d.Software {
			how = "capture on its interface"
			if len(d.Interfaces) > 0 {
				how = "capture -i " + text.SafeString(d.Interfaces[0])
			}
		}
		rows = append(rows, []string{text.SafeString(d.Name), or(d.Driver), or(d.Link), or(strings.ToLower(d.State)), or(strings.Join(d.Interfaces, ",")), how})
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return table.Print(w, []string{"DEVICE", "DRIVER", "LINK", "STATE", "INTERFACES", "HOW TO CAPTURE"}, make([]bool, 6), rows)
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return text.SafeString(s)
}

func rdmaOf(devices []live.RDMADevice) string {
	var names []string
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return or(strings.Join(names, ","))
}

// seen reports whether a capture on an interface shows the traffic of its RDMA devices.
func seen(devices []live.RDMADevice) string {
	soft, hard := false, false
	for _, d := range devices {
		soft = soft || d.Software
		hard = hard || !d.Software
	}
	switch {
	case hard && soft:
		return "that of software only"
	case hard:
		return "bypasses the kernel"
	case soft:
		return "can be captured"
	}
	return "-"
}
