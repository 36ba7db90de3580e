package account

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	lineKinds = 12  // kinds, and services, in Line
	maxKinds  = 256 // kinds, and services, of merged accounts; the rest is one
	otherKind = "of other kinds"
	maxFaults = 32 // of malformed headers, of merged accounts; the rest is one

	otherFault = "other"
)

// Finish sets Line of an account that was read as JSON.
func (a *Account) Finish() { a.Line = string(a.line(nil)) }

// Sum adds up the accounts of several inputs. The result does not depend on their order. Sums that do not fit are
// the largest number that does. The zero value is empty.
type Sum struct {
	packets, transactions uint64
	kinds                 map[Kind]*Kind
	services              map[Service]int
	malformed             map[string]uint64 // by fault
	first                 *FirstFault       // if only one of them has any
}

// Add adds an account.
func (t *Sum) Add(a *Account) {
	if t.kinds == nil {
		t.kinds, t.services = make(map[Kind]*Kind), make(map[Service]int)
		t.malformed = make(map[string]uint64)
	}
	t.packets = add(t.packets, a.Packets)
	t.transactions = add(t.transactions, a.Transactions)
	for _, k := range a.Kinds {
		name := Kind{Kind: k.Kind, Tunnel: k.Tunnel, Port: k.Port}
		if t.kinds[name] == nil {
			x := name
			t.kinds[name] = &x
		}
		t.kinds[name].Packets = add(t.kinds[name].Packets, k.Packets)
		t.kinds[name].Bytes = add(t.kinds[name].Bytes, k.Bytes)
	}
	for _, s := range a.Services {
		name := s
		name.Connections = 0
		t.services[name] = int(min(add(uint64(t.services[name]), uint64(max(s.Connections, 0))), math.MaxInt32))
	}
	if len(a.Malformed) > 0 {
		t.first = a.First
		if len(t.malformed) > 0 {
			t.first = nil
		}
	}
	for _, f := range a.Malformed {
		if _, ok := t.malformed[f.Fault]; !ok && len(t.malformed) >= maxFaults {
			f.Fault = otherFault
		}
		t.malformed[f.Fault] = add(t.malformed[f.Fault], f.Sends)
	}
}

// Account is the sum.
func (t *Sum) Account() *Account {
	out := &Account{Schema: Schema, Packets: t.packets, Transactions: t.transactions, Kinds: []Kind{}, Services: []Service{}, First: t.first}
	for _, k := range t.kinds {
		out.Kinds = append(out.Kinds, *k)
	}
	slices.SortFunc(out.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(b.Packets, a.Packets), compareKinds(&a, &b))
	})
	if len(out.Kinds) > maxKinds {
		rest := Kind{Kind: otherKind}
		for _, k := range out.Kinds[maxKinds-1:] {
			rest.Packets, rest.Bytes = add(rest.Packets, k.Packets), add(rest.Bytes, k.Bytes)
		}
		out.Kinds = append(out.Kinds[:maxKinds-1], rest)
	}
	for s, n := range t.services {
		s.Connections = n
		out.Services = append(out.Services, s)
	}
	slices.SortFunc(out.Services, func(a, b Service) int {
		return cmp.Or(
			cmp.Compare(b.Connections, a.Connections), cmp.Compare(fabric(a.Fabric), fabric(b.Fabric)), cmp.Compare(a.Port, b.Port),
			cmp.Compare(a.ServiceID, b.ServiceID), cmp.Compare(a.Service, b.Service),
		)
	})
	if n := len(out.Services) - maxKinds; n > 0 {
		rest := Service{Service: "other"}
		for _, s := range out.Services[maxKinds-1:] {
			rest.Connections = int(min(add(uint64(rest.Connections), uint64(s.Connections)), math.MaxInt32))
		}
		out.Services = append(out.Services[:maxKinds-1], rest)
	}
	for _, f := range slices.Sorted(maps.Keys(t.malformed)) {
		out.Malformed = append(out.Malformed, Fault{Fault: f, Sends: t.malformed[f]})
	}
	out.Finish()
	return out
}

// compareKinds orders kinds that are equally frequent as decode.Account does.
func compareKinds(a, b *Kind) int {
	x, y := classOf(a.Kind), classOf(b.Kind)
	return cmp.Or(cmp.Compare(x.class, y.class), cmp.Compare(x.fabric, y.fabric), cmp.Compare(a.Port, b.Port),
		cmp.Compare(a.Tunnel, b.Tunnel), cmp.Compare(x.name, y.name), cmp.Compare(a.Kind, b.Kind))
}

// class is what the name of a kind tells of a decode.Kind.
type class struct {
	class  decode.Class
	fabric rdma.Fabric
	name   string // of a kind that is not decoded
}

// fabricOf are the fabrics by their titles.
var fabricOf = func() map[string]rdma.Fabric {
	all := make(map[string]rdma.Fabric)
	for f := rdma.RoCEv2; int(f) < rdma.Fabrics; f++ {
		all[string(text.KindOf(nil, &decode.Kind{Class: decode.ClassRDMA, Fabric: f}))] = f
	}
	return all
}()

// classOf is the opposite of text.KindOf.
func classOf(kind string) class {
	title, rpc := strings.CutPrefix(kind, "RPC over ")
	switch f := fabricOf[title]; {
	case rpc:
		return class{class: decode.ClassRPC, fabric: f}
	case kind == "iWARP":
		return class{class: decode.ClassIWARP}
	case f != 0 && f < rdma.IWARP:
		return class{class: decode.ClassRDMA, fabric: f}
	case strings.HasPrefix(kind, "TCP port "):
		return class{class: decode.ClassTCP}
	case strings.HasPrefix(kind, "UDP port "):
		return class{class: decode.ClassUDP}
	case kind == "IP fragments":
		return class{class: decode.ClassFragment}
	case kind == "kernel events":
		return class{class: decode.ClassKernel}
	case strings.HasPrefix(kind, "damaged ("):
		return class{class: decode.ClassDamaged, name: kind}
	case kind == otherKind:
		return class{class: decode.ClassOther}
	case kind == "empty":
		return class{class: decode.ClassUnknown}
	}
	return class{class: decode.ClassUnknown, name: strings.TrimPrefix(kind, "unsupported ")}
}

func add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// line is text.Account of what a was made from.
func (a *Account) line(b []byte) []byte {
	b = strconv.AppendUint(b, a.Packets, 10)
	b = append(b, " packets"...)
	if a.Packets == 1 {
		b = b[:len(b)-1]
	}
	sep := ": "
	for i := range a.Kinds {
		k := &a.Kinds[i]
		if i == lineKinds && len(a.Kinds) > lineKinds+1 {
			var rest uint64
			for _, k := range a.Kinds[i:] {
				rest = add(rest, k.Packets)
			}
			b = append(b, sep...)
			b = strconv.AppendUint(b, rest, 10)
			b = append(b, " of "...)
			b = strconv.AppendInt(b, int64(len(a.Kinds)-lineKinds), 10)
			b = append(b, " other kinds"...)
			break
		}
		b = append(b, sep...)
		b = strconv.AppendUint(b, k.Packets, 10)
		b = append(append(b, ' '), k.Kind...)
		if k.Tunnel != "" {
			b = append(append(b, " in "...), k.Tunnel...)
		}
		sep = ", "
	}
	if a.Transactions == 0 {
		b = append(b, ", no RPC"...)
	}
	sep = "; services: "
	for i := range a.Services {
		s := &a.Services[i]
		if i == lineKinds && len(a.Services) > lineKinds+1 {
			b = append(b, " and "...)
			b = strconv.AppendInt(b, int64(len(a.Services)-lineKinds), 10)
			b = append(b, " more"...)
			break
		}
		b = append(b, sep...)
		b = text.ServiceOf(b, &decode.Service{Fabric: fabric(s.Fabric), Port: s.Port, ID: s.ServiceID})
		sep = ", "
	}
	var malformed uint64
	for _, f := range a.Malformed {
		malformed = add(malformed, f.Sends)
	}
	return text.MalformedSends(b, malformed)
}

// fabric is the fabric of a name; 0 if none has it.
func fabric(name string) rdma.Fabric {
	for f := rdma.RoCEv2; int(f) < rdma.Fabrics; f++ {
		if f.String() == name {
			return f
		}
	}
	return 0
}
