package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/capture/pcapfilter"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const extcapLong = `Serve as a capture source of Wireshark (extcap): Wireshark then lists "NFS over
RDMA" among its interfaces, captures on this machine or over SSH on another, and
shows packets whose comments name their transactions, as annotate writes them.

Wireshark starts programs in its extcap directory (Help > About > Folders). Put
a script there, with the name rpcrdma, that may be executed:

  #!/bin/sh
  exec rpcrdma-dump extcap "$@"

Wireshark passes the flags. The remote host needs tcpdump or
rpcrdma-dump, and ssh must not ask for a password.`

// The names of the capture sources, which users see in tshark -D and tshark -i.
const (
	extcapLocal = "rpcrdma"
	extcapSSH   = "rpcrdma-ssh"
)

// extcapOptions are the flags that Wireshark passes: what it asks for, and the
// options that extcapArgs describes.
type extcapOptions struct {
	interfaces, dlts, config, capture bool
	iface, fifo, filter               string
	version, reload                   string

	device, delay, memory string
	rpc                   bool
	host, port, user, how string
}

func newExtcapCommand(s *cli.Streams) *cobra.Command {
	o := &extcapOptions{}
	cmd := &cobra.Command{
		Use:     "extcap FLAGS",
		Short:   "Capture for Wireshark, on this machine or over SSH",
		Long:    extcapLong,
		Example: "  rpcrdma-dump extcap --extcap-interfaces",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.interfaces, "extcap-interfaces", false, "list the capture sources")
	f.BoolVar(&o.dlts, "extcap-dlts", false, "list the link types of a source")
	f.BoolVar(&o.config, "extcap-config", false, "list the options of a source")
	f.BoolVar(&o.capture, "capture", false, "capture")
	f.StringVar(&o.iface, "extcap-interface", "", "the `source`: "+extcapLocal+" or "+extcapSSH)
	f.StringVar(&o.fifo, "fifo", "", "with --capture: write to this `file`, usually a named pipe")
	f.StringVar(&o.filter, "extcap-capture-filter", "", "with --capture: only packets that match this capture filter `expression`")
	f.StringVar(&o.version, "extcap-version", "", "the `version` of Wireshark")
	f.StringVar(&o.reload, "extcap-reload-option", "", "list the values of this `option` again")
	f.StringVar(&o.device, "device", "any", "network `interface` to capture on")
	f.BoolVar(&o.rpc, "rpc", false, "rpcbind, MOUNT and NFS over TCP and UDP, too")
	f.StringVar(&o.delay, "delay", "2s", "show packets after this `time`, with what is known of their transactions by then")
	f.StringVar(&o.memory, "limit-memory", "", "resident memory of the program, for example 64M")
	f.StringVar(&o.host, "remote-host", "", "host to capture on: a name or an `address`")
	f.StringVar(&o.port, "remote-port", "", "`port` of its SSH server")
	f.StringVar(&o.user, "remote-user", "", "`user` on that host, who may capture")
	f.StringVar(&o.how, "remote-program", "tcpdump", "`program` that captures there: "+strings.Join(remotePrograms, ", "))
	return cmd
}

func (o *extcapOptions) run(cmd *cobra.Command, s *cli.Streams) error {
	if o.interfaces {
		return o.list(s.Out)
	}
	if o.iface != extcapLocal && o.iface != extcapSSH {
		return cli.Usagef("--extcap-interface is %s or %s; --extcap-interfaces lists them", extcapLocal, extcapSSH)
	}
	switch {
	case o.dlts:
		// The link type of a file is in its interface blocks; Wireshark uses this one for the syntax of filters only.
		_, err := io.WriteString(s.Out, "dlt {number=1}{name=EN10MB}{display=Ethernet}\n")
		return err
	case o.config:
		return o.arguments(s.Out)
	case o.capture:
		return o.start(cmd, s)
	}
	return cli.Usagef("one of --extcap-interfaces, --extcap-dlts, --extcap-config, --capture is needed")
}

// list answers --extcap-interfaces.
func (o *extcapOptions) list(w io.Writer) error {
	_, err := fmt.Fprintf(w, "extcap {version=%s}{display=RPC-over-RDMA toolkit}\n"+
		"interface {value=%s}{display=NFS over RDMA, with transactions}\n"+
		"interface {value=%s}{display=NFS over RDMA on another host, with transactions}\n",
		extcapText(cli.Version()), extcapLocal, extcapSSH)
	return err
}

// An extcapArg is an option that Wireshark shows.
type extcapArg struct {
	flag, display, kind, value, tip string
	values                          []string
}

// arguments answers --extcap-config.
func (o *extcapOptions) arguments(w io.Writer) error {
	var args []extcapArg
	if o.iface == extcapSSH {
		args = append(args,
			extcapArg{flag: "remote-host", display: "Host", kind: "string", tip: "Name or address"},
			extcapArg{flag: "remote-port", display: "SSH port", kind: "unsigned", value: "22"},
			extcapArg{flag: "remote-user", display: "User", kind: "string", tip: "Who may capture there; keys and known hosts come from ssh"},
			extcapArg{flag: "remote-program", display: "Capture there with", kind: "selector", value: remotePrograms[0], values: remotePrograms},
			extcapArg{flag: "device", display: "Interface", kind: "string", value: "any", tip: "Network interface of that host"})
	} else {
		args = append(args, extcapArg{flag: "device", display: "Interface", kind: "selector", value: "any", values: localDevices()})
	}
	args = append(args,
		extcapArg{flag: "rpc", display: "RPC over TCP and UDP, too", kind: "boolflag", value: "false"},
		extcapArg{flag: "delay", display: "Delay", kind: "string", value: "2s", tip: "Packets are shown after this time, with what is known of their transactions by then"},
		extcapArg{flag: "limit-memory", display: "Memory", kind: "string", tip: "Resident memory, for example 240M"})
	for i, a := range args {
		line := fmt.Sprintf("arg {number=%d}{call=--%s}{display=%s}{type=%s}", i, a.flag, a.display, a.kind)
		if a.value != "" {
			line += "{default=" + a.value + "}"
		}
		if a.tip != "" {
			line += "{tooltip=" + a.tip + "}"
		}
		for _, v := range a.values {
			line += fmt.Sprintf("\nvalue {arg=%d}{value=%s}{display=%s}{default=%t}", i, extcapText(v), extcapText(v), v == a.value)
		}
		if _, err := io.WriteString(w, line+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// localDevices lists the network interfaces of this machine.
func localDevices() []string {
	names := []string{"any"}
	list, err := live.Interfaces("/sys")
	if err != nil {
		return names // of a system without live capture
	}
	for _, i := range list {
		if i.Name != "any" {
			names = append(names, i.Name)
		}
	}
	return names
}

// extcapText makes a text fit between braces.
func extcapText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '{' || r == '}' || r == 0x7f {
			return '_'
		}
		return r
	}, s)
}

var remotePrograms = []string{"tcpdump", "sudo -n tcpdump", "rpcrdma-dump", "sudo -n rpcrdma-dump"}

// annotated is the command line of annotate that captures.
func (o *extcapOptions) annotated(input ...string) []string {
	args := append([]string{"annotate", "--delay", o.delay, "-w", o.fifo}, input...)
	if o.memory != "" {
		args = append(args, "--limit-memory", o.memory)
	}
	return args
}

// start answers --capture.
func (o *extcapOptions) start(cmd *cobra.Command, s *cli.Streams) error {
	if o.fifo == "" {
		return cli.Usagef("--capture needs --fifo")
	}
	// Wireshark makes the pipe. Whoever types the command by hand may name any file, and loses none.
	if s, err := os.Stat(o.fifo); err == nil && s.Mode().IsRegular() {
		return cli.Usagef("--fifo: %s exists and is not a pipe", o.fifo)
	}
	if o.iface == extcapSSH {
		return o.remote(s)
	}
	input := []string{"-i", o.device}
	if o.rpc {
		input = append(input, "--rpc")
	}
	if o.filter != "" {
		input = append(input, "--capture-filter", o.filter)
	}
	return execute(s, o.annotated(input...))
}

// execute runs another command of the program.
func execute(s *cli.Streams, args []string) error {
	root := newRootCommand(s)
	root.SetArgs(args)
	return root.Execute()
}

// remote captures over SSH and annotates here.
func (o *extcapOptions) remote(s *cli.Streams) error {
	args, err := o.ssh()
	if err != nil {
		return err
	}
	c := exec.Command("ssh", args...)
	c.Stderr, c.WaitDelay = printable.TextWriter(s.Err), time.Second // of a host that may say anything, and may not end
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("starting ssh: %w", err)
	}
	err = execute(&cli.Streams{In: out, Out: s.Out, Err: s.Err}, o.annotated("-"))
	_ = out.Close()
	// The remote program ends when nobody reads any more, ssh with it; one that hangs is not waited for.
	t := time.AfterFunc(2*time.Second, func() { _ = c.Process.Kill() })
	defer t.Stop()
	if werr := c.Wait(); err == nil {
		var exit *exec.ExitError
		if errors.As(werr, &exit) && exit.ExitCode() == 255 {
			return fmt.Errorf("ssh to %s failed", o.host)
		}
	}
	return err
}

// What goes into a command line of ssh, and what its other end gives to a shell.
var (
	hostNames   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	userNames   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._@-]*$`)
	deviceNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@-]*$`)
)

// ssh returns the arguments of ssh. All that comes from options is checked
// against allow-lists, since the other end passes the command to a shell.
func (o *extcapOptions) ssh() ([]string, error) {
	// A zone may have any characters, and configurations of ssh pass the host on to shells.
	if a, err := netip.ParseAddr(o.host); (err != nil || a.Zone() != "" && !deviceNames.MatchString(a.Zone())) && !hostNames.MatchString(o.host) {
		return nil, cli.Usagef("--remote-host: %q is neither a host name nor an address", o.host)
	}
	if !deviceNames.MatchString(o.device) {
		return nil, cli.Usagef("--device: %q is not the name of a network interface", o.device)
	}
	args := []string{"-o", "BatchMode=yes"}
	if o.port != "" {
		n, err := strconv.ParseUint(o.port, 10, 16)
		if err != nil || n == 0 {
			return nil, cli.Usagef("--remote-port: %q is not a port", o.port)
		}
		args = append(args, "-p", strconv.FormatUint(n, 10))
	}
	if o.user != "" {
		if !userNames.MatchString(o.user) {
			return nil, cli.Usagef("--remote-user: %q is not the name of a user", o.user)
		}
		args = append(args, "-l", o.user)
	}
	remote, err := o.there()
	if err != nil {
		return nil, err
	}
	return append(args, "--", o.host, remote), nil
}

// there is the command that captures on the remote host, whose shell takes it apart.
func (o *extcapOptions) there() (string, error) {
	if !slices.Contains(remotePrograms, o.how) {
		return "", cli.Usagef("--remote-program is one of %s, not %q", strings.Join(remotePrograms, ", "), o.how)
	}
	if _, err := pcapfilter.Parse(o.filter); err != nil {
		return "", &cli.UsageError{Err: err}
	}
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	if strings.HasSuffix(o.how, "tcpdump") {
		filter := "udp port 4791 or tcp port 20049 or ether proto 0x8915"
		if o.rpc {
			filter += " or port 111 or port 2049 or port 20048"
		}
		if o.filter != "" {
			filter = "(" + filter + ") and (" + o.filter + ")"
		}
		return o.how + " -i " + quoted(o.device) + " -U -w - " + quoted(filter), nil
	}
	there := o.how + " capture -i " + quoted(o.device) + " -w -"
	if o.rpc {
		there += " --rpc"
	}
	if o.filter != "" {
		there += " -f " + quoted(o.filter)
	}
	return there, nil
}
