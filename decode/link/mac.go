package link

import (
	"slices"

	"github.com/rpcrdma/toolkit/capture"
)

// MACs returns the destination and the source address of the Ethernet header of the decoded packet f, or nil if it has none. Inside a
// mirror or tunnel that carries whole frames, that is the header of the inner frame.
func MACs(lt capture.LinkType, data []byte, wire uint32, f *Frame) (to, from []byte) {
	const size = 6
	if lt == capture.LinkEthernet && len(f.Tunnels) == 0 {
		if len(data) < 2*size {
			return nil, nil
		}
		return data[:size], data[size : 2*size]
	}
	var (
		again Frame
		parts []Part
	)
	DecodeParts(lt, data, wire, &again, &parts)
	for i := len(parts) - 1; i > 0; i-- {
		p, q := &parts[i-1], &parts[i]
		switch {
		case p.Kind != PartMAC || q.Kind != PartMAC || cap(p.Head)-cap(q.Head) != size: // of two parts of a header one follows the other
		case len(again.Tunnels) != len(f.Tunnels) || slices.ContainsFunc(f.Tunnels[p.Tunnels:], func(t Tunnel) bool { return !t.Type.tag() }):
			return nil, nil
		default:
			return p.Head, q.Head
		}
	}
	return nil, nil
}

// tag reports whether a wrapping lies between the addresses and the EtherType of the frame in it.
func (t TunnelType) tag() bool {
	switch t {
	case CiscoMeta, MACsec, VNTag, ETag, HSR, Arista:
		return true
	}
	return false
}
