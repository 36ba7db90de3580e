package text

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// fabricTitles are the usual spellings of the fabrics.
var fabricTitles = [...]string{"", "RoCEv2", "RoCEv1", "InfiniBand", "iWARP", "TCP", "UDP", "RDMA"}

// KindOf names a kind of packets: "RoCEv2 in vxlan", "ARP", "TCP port 22 (SSH)".
func KindOf(b []byte, k *decode.Kind) []byte {
	switch k.Class {
	case decode.ClassRDMA:
		b = append(b, fabricTitles[k.Fabric]...)
	case decode.ClassIWARP:
		b = append(b, "iWARP"...)
	case decode.ClassRPC:
		b = append(b, "RPC over "...)
		b = append(b, fabricTitles[k.Fabric]...)
	case decode.ClassTCP:
		b = portName(append(b, "TCP port "...), k.Port)
	case decode.ClassUDP:
		b = portName(append(b, "UDP port "...), k.Port)
	case decode.ClassFragment:
		b = append(b, "IP fragments"...)
	case decode.ClassKernel:
		b = append(b, "kernel events"...)
	case decode.ClassUnknown:
		if k.Unknown.Layer == link.LinkLayer {
			b = append(b, "unsupported "...)
		}
		if s := k.Unknown.String(); s != "" {
			b = append(b, s...)
		} else {
			b = append(b, "empty"...)
		}
	case decode.ClassDamaged:
		b = append(b, "damaged ("...)
		b = append(b, k.Problem.String()...)
		b = append(b, ')')
	default:
		b = append(b, "of other kinds"...)
	}
	if k.Tunnel == link.Unnamed {
		b = append(append(b, " in "...), k.Unknown.String()...)
		b = strconv.AppendUint(append(b, ", "...), uint64(k.Skipped), 10)
		return append(b, " bytes further in"...)
	}
	if k.Tunnel != link.NoTunnel {
		b = append(b, " in "...)
		b = append(b, k.Tunnel.String()...)
	}
	return b
}

func portName(b []byte, port uint16) []byte {
	b = strconv.AppendUint(b, uint64(port), 10)
	if s := rdma.ServiceName(port); s != "" {
		b = append(b, " ("...)
		b = append(b, s...)
		b = append(b, ')')
	}
	return b
}

// ServiceOf names a service: "NVMe-oF (4420)", "service 0x1000000000001".
func ServiceOf(b []byte, s *decode.Service) []byte {
	if s.Port == 0 {
		b = append(b, "service "...)
		return hexNumber(b, s.ID, 16)
	}
	if name := rdma.ServiceOn(s.Fabric, s.Port); name != "" {
		b = append(b, name...)
		b = append(b, " ("...)
		b = strconv.AppendUint(b, uint64(s.Port), 10)
		return append(b, ')')
	}
	return strconv.AppendUint(append(b, "port "...), uint64(s.Port), 10)
}

// Account describes in one line what the packets of an input were: the most frequent kinds first, at most
// that many, then the rest.
func Account(b []byte, a *decode.Account, most int) []byte {
	b = units.AppendPlural(b, a.Packets, "packet")
	sep := ": "
	for i := range a.Kinds {
		if i == most && len(a.Kinds) > most+1 {
			var rest uint64
			for _, k := range a.Kinds[i:] {
				rest += k.Packets
			}
			b = append(b, sep...)
			b = strconv.AppendUint(b, rest, 10)
			b = append(b, " of "...)
			b = strconv.AppendInt(b, int64(len(a.Kinds)-most), 10)
			b = append(b, " other kinds"...)
			break
		}
		b = append(b, sep...)
		b = strconv.AppendUint(b, a.Kinds[i].Packets, 10)
		b = KindOf(append(b, ' '), &a.Kinds[i].Kind)
		sep = ", "
	}
	if a.Transactions == 0 {
		b = append(b, ", no RPC"...)
	}
	sep = "; services: "
	for i := range a.Services {
		if i == most && len(a.Services) > most+1 {
			b = append(b, " and "...)
			b = strconv.AppendInt(b, int64(len(a.Services)-most), 10)
			b = append(b, " more"...)
			break
		}
		b = append(b, sep...)
		b = ServiceOf(b, &a.Services[i])
		sep = ", "
	}
	return MalformedSends(b, a.Malformed.Total())
}

// MalformedSends ends the line of an account that has Sends with malformed headers of RPC-over-RDMA.
func MalformedSends(b []byte, n uint64) []byte {
	if n == 0 {
		return b
	}
	b = append(b, "; "...)
	b = append(b, units.Plural(n, "malformed RPC-over-RDMA header")...)
	return b
}

// HeaderFaults lists the faults of malformed headers: "2 unknown version, 1 unknown message type".
func HeaderFaults(b []byte, m *transaction.Malformed) []byte {
	sep := ""
	for f, n := range m.Faults() {
		b = append(b, sep...)
		b = strconv.AppendUint(b, n, 10)
		b = append(append(b, ' '), f.String()...)
		sep = ", "
	}
	return b
}
