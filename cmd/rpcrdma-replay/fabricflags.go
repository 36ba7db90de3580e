package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
)

// fabricFlags choose a fabric and the options of its endpoints.
type fabricFlags struct {
	udpPort       uint16
	peerUDPPort   uint16
	mtu           int
	crc           bool
	delay         time.Duration
	bandwidth     string
	inline        int
	model         string
	dialect       string
	registration  string
	choice        string
	minChunk      int
	longReply     int
	segment       int
	segments      int
	operation     int
	credits       uint32
	policy        string
	clientFactor  float64
	serverFactor  float64
	buffers       uint32
	readDepth     int
	noInvalidate  bool
	noPrivateData bool
	anyOffset     bool
}

var (
	models        = map[string]endpoint.Model{"read-write": endpoint.ReadWrite, "read-read": endpoint.ReadRead}
	dialects      = map[string]rpcrdma.Dialect{"1": rpcrdma.DialectNone, "callaghan": rpcrdma.DialectCallaghan, "solaris": rpcrdma.DialectSolaris}
	registrations = map[string]endpoint.Registration{"per-call": endpoint.PerCall, "inline": endpoint.Inline, "pool": endpoint.Pool, "persistent": endpoint.Persistent, "windows": endpoint.Windows}
	choices       = map[string]endpoint.Choice{"linux": endpoint.ChooseLinux, "minimum": endpoint.ChooseMinimum}
	policies      = map[string]endpoint.Policy{"linux": endpoint.CreditsLinux, "fixed": endpoint.CreditsFixed, "dynamic": endpoint.CreditsDynamic}
)

func (f *fabricFlags) flags(s *pflag.FlagSet) {
	s.Uint16Var(&f.udpPort, "udp-port", 0, "UDP `port` of our RoCEv2 sockets (default 4791)")
	s.Uint16Var(&f.peerUDPPort, "peer-udp-port", 0, "UDP `port` of the peer's RoCEv2 (default 4791)")
	cli.NumberVar(s, &f.mtu, "mtu", 256, 4096, "RoCEv2 path MTU, or payload of an FPDU of iWARP, in `bytes`: 256 to 4096 (default the largest)")
	s.BoolVar(&f.crc, "crc", false, "ask for CRCs on iWARP")
	cli.DurationVar(s, &f.delay, "link-delay", 0, "model of a network: one-way `delay` of what this side sends (soft providers and TCP)")
	s.StringVar(&f.bandwidth, "link-bandwidth", "", "model of a network: bits a second that this side sends, for example 10G")
	cli.PositiveVar(s, &f.inline, "inline", "inline threshold in `bytes`, both ways (default 4096)")
	s.StringVar(&f.model, "model", "read-write", "transfer `model`: read-write (RFC 8166) or read-read (with RDMA_DONE)")
	s.StringVar(&f.dialect, "dialect", "1", "`version` of the transport header: 1, or the dialects callaghan and solaris of version 0")
	s.StringVar(&f.registration, "registration", "per-call", "`mode` of memory registration: per-call, inline, pool, persistent or windows")
	s.StringVar(&f.choice, "chunks", "linux", "`rule` for chunks: linux (only what may not fit inline) or minimum (all from --min-chunk on)")
	cli.PositiveVar(s, &f.minChunk, "min-chunk", "smallest item in `bytes` with a separate chunk under --chunks minimum (default 1024)")
	cli.PositiveVar(s, &f.longReply, "long-reply", "smallest Reply chunk in `bytes` (default as needed)")
	cli.PositiveVar(s, &f.segment, "segment", "largest segment in `bytes` (default 1048576; Linux has 131072 on Soft-RoCE)")
	cli.PositiveVar(s, &f.segments, "max-segments", "at most `n` segments of a chunk (default 260)")
	cli.PositiveVar(s, &f.operation, "operation", "largest RDMA Read and Write of a server in `bytes` (default a segment)")
	s.Uint32Var(&f.credits, "credits", 0, "ask for `n` credits (default 128), or grant them (default 64)")
	s.StringVar(&f.policy, "credit-policy", "linux", "`policy` of credits: linux, fixed or dynamic (OSU 2006)")
	s.Float64Var(&f.clientFactor, "client-factor", 0, "`factor` of what a client asks for under the policy dynamic (default 2)")
	s.Float64Var(&f.serverFactor, "server-factor", 0, "`factor` of what a server grants under the policy dynamic (default 0.5)")
	s.Uint32Var(&f.buffers, "credit-buffers", 0, "`receives` of a server for all clients, under the policy dynamic (default 4096)")
	cli.PositiveVar(s, &f.readDepth, "read-depth", "at most `n` RDMA Reads in flight on a connection (default 16)")
	s.BoolVar(&f.noInvalidate, "no-remote-invalidate", false, "do not let the peer invalidate our handles")
	s.BoolVar(&f.noPrivateData, "no-private-data", false, "leave the private data of RFC 8797 out")
	s.BoolVar(&f.anyOffset, "any-offset", false, "leave the addresses of memory to the provider (otherwise the XID is in their upper half)")
}

// pick finds a name in a table.
func pick[T any](flag, name string, table map[string]T) (T, error) {
	v, ok := table[name]
	if !ok {
		var names []string
		for n := range table {
			names = append(names, n)
		}
		return v, cli.Usagef("--%s: %q is not one of %s", flag, name, strings.Join(slices.Sorted(slices.Values(names)), ", "))
	}
	return v, nil
}

// options are the site options without a name.
func (f *fabricFlags) options() (o providers.Options, err error) {
	e := endpoint.Options{InlineSend: f.inline, InlineReceive: f.inline, MinChunk: f.minChunk, LongReply: f.longReply, SegmentSize: f.segment,
		MaxSegments: f.segments, OperationSize: f.operation, Credits: f.credits, ReadDepth: f.readDepth,
		Dynamic:            endpoint.Dynamic{ClientFactor: f.clientFactor, ServerFactor: f.serverFactor, Buffers: f.buffers},
		NoRemoteInvalidate: f.noInvalidate, NoPrivateData: f.noPrivateData, AnyOffset: f.anyOffset}
	var errs [5]error
	e.Model, errs[0] = pick("model", f.model, models)
	e.Dialect, errs[1] = pick("dialect", f.dialect, dialects)
	e.Registration, errs[2] = pick("registration", f.registration, registrations)
	e.Choice, errs[3] = pick("chunks", f.choice, choices)
	e.Policy, errs[4] = pick("credit-policy", f.policy, policies)
	if err = errors.Join(errs[:]...); err != nil {
		return o, err
	}
	o = providers.Options{Endpoint: e, UDPPort: f.udpPort, PeerUDPPort: f.peerUDPPort, MTU: f.mtu, CRC: f.crc, Link: verbs.Link{Delay: f.delay}}
	if f.bandwidth != "" {
		if o.Link.Bandwidth, err = cli.ParseRate(f.bandwidth); err != nil {
			return o, cli.Usagef("--link-bandwidth: %v", err)
		}
	}
	if f.mtu&(f.mtu-1) != 0 {
		return o, cli.Usagef("--mtu %d: the MTU is 256, 512, 1024, 2048 or 4096", f.mtu)
	}
	return o, nil
}

// parseSize reads the number of bytes that a flag names.
func parseSize(flag, s string) (int64, error) {
	n, err := cli.ParseSize(s)
	if err != nil {
		return 0, cli.Usagef("%s: %v", flag, err)
	}
	return n, nil
}

// fabricNames are the values of --provider.
var fabricNames = append([]string{"auto"}, providers.Fabrics...)

func checkFabric(name string) error {
	if slices.Contains(fabricNames, name) {
		return nil
	}
	return cli.Usagef("--provider: %q is not one of %s", name, strings.Join(fabricNames, ", "))
}

// explain says which fabric was chosen, and why. It leaves out fabrics that this program was built without.
func explain(tried []providers.Attempt) string {
	var list []string
	for _, a := range tried {
		switch {
		case errors.Is(a.Err, rdma.ErrNotBuilt):
		case a.Err == nil:
			list = append(list, a.Name+" answers")
		default:
			list = append(list, fmt.Sprintf("%s: %v", a.Name, a.Err))
		}
	}
	return strings.Join(list, "; ")
}
