package layers

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// icrcHeaders are the headers below the BTH that the ICRC covers.
type icrcHeaders struct {
	lrh     *LRH
	network gopacket.SerializableLayer // *layers.IPv4, *layers.IPv6 or *GRH
	udp     *layers.UDP
	scratch gopacket.SerializeBuffer
}

// SetNetworkLayerForChecksum says which network layer the packet will have,
// which the ICRC covers: *layers.IPv4 or *layers.IPv6 (RoCEv2; it needs
// SetTransportLayerForChecksum as well), or *GRH (RoCEv1, InfiniBand). Only
// SerializeTo with ComputeChecksums needs it. With FixLengths, the lengths in
// that layer are set, too.
func (l *BTH) SetNetworkLayerForChecksum(n gopacket.NetworkLayer) error {
	switch n := n.(type) {
	case *layers.IPv4:
		l.checksum.network = n
	case *layers.IPv6:
		l.checksum.network = n
	case *GRH:
		l.checksum.network = n
	default:
		return fmt.Errorf("cannot use layer type %v as the network layer of an ICRC", n.LayerType())
	}
	return nil
}

// SetTransportLayerForChecksum says which UDP header the packet will have
// (RoCEv2); t is a *layers.UDP. Its ports count for the ICRC.
func (l *BTH) SetTransportLayerForChecksum(t gopacket.TransportLayer) error {
	udp, ok := t.(*layers.UDP)
	if !ok {
		return fmt.Errorf("cannot use layer type %v as the transport layer of an ICRC", t.LayerType())
	}
	l.checksum.udp = udp
	return nil
}

// SetLinkLayerForChecksum says which local route header the packet will have
// (native InfiniBand); k is an *LRH.
func (l *BTH) SetLinkLayerForChecksum(k gopacket.LinkLayer) error {
	lrh, ok := k.(*LRH)
	if !ok {
		return fmt.Errorf("cannot use layer type %v as the link layer of an ICRC", k.LayerType())
	}
	l.checksum.lrh = lrh
	return nil
}

var errNoHeaders = errors.New("ICRC cannot be computed without the headers below: call SetNetworkLayerForChecksum, and SetTransportLayerForChecksum for RoCEv2 or SetLinkLayerForChecksum for InfiniBand")

// compute computes the ICRC of packet, from the BTH through the place of the
// ICRC. The headers below are made as they will be, over bytes of no
// importance.
func (h *icrcHeaders) compute(packet []byte, opts gopacket.SerializeOptions) (uint32, error) {
	opts.ComputeChecksums = false // the ICRC does not cover them
	if h.scratch == nil {
		h.scratch = gopacket.NewSerializeBuffer()
	}
	b := h.scratch
	if err := b.Clear(); err != nil {
		return 0, err
	}
	if _, err := b.AppendBytes(len(packet)); err != nil {
		return 0, err
	}
	var parts [3]gopacket.SerializableLayer
	outer, n := parts[:0], 0 // n is the size of the headers that are not UDP
	proto := link.UDP
	_, grh := h.network.(*GRH)
	switch {
	case h.network == nil && h.lrh == nil:
		return 0, errNoHeaders
	case grh || h.network == nil:
		if h.lrh != nil {
			outer, n, proto = append(outer, h.lrh), roce.LRHSize, link.InfiniBand
		} else {
			proto = link.RoCEv1
		}
		if grh {
			outer, n = append(outer, h.network), n+roce.GRHSize
		}
	case h.udp == nil:
		return 0, errNoHeaders
	default:
		outer = append(outer, h.network, h.udp)
	}
	for i := len(outer) - 1; i >= 0; i-- {
		if err := outer[i].SerializeTo(b, opts); err != nil {
			return 0, err
		}
		b.PushLayer(outer[i].LayerType())
	}
	header := b.Bytes()
	var udp []byte
	if proto == link.UDP {
		at := len(header) - len(packet)
		header, udp = header[:at-udpSize], header[at-udpSize:at]
	} else {
		header = header[:n]
	}
	sum, ok := roce.ICRC(proto, header, udp, packet[:len(packet)-roce.ICRCSize])
	if !ok {
		return 0, errors.New("the headers below are not those of RoCE or InfiniBand: no ICRC is defined")
	}
	return sum, nil
}

const udpSize = 8

// maxHeaders is the size of the longest headers that an ICRC is verified with.
const maxHeaders = 256

// VerifyICRC verifies the ICRC of a decoded packet. below is the layers between
// the link and the BTH, in their order: IPv4 or IPv6 (and its hop-by-hop
// header, if there is one) and UDP; GRH; LRH; or LRH and GRH.
func (l *BTH) VerifyICRC(below ...gopacket.Layer) roce.Verdict {
	if l.Cut {
		return roce.NotCheckedCut
	}
	if len(below) == 0 || len(l.raw) < roce.BTHSize+roce.ICRCSize {
		return roce.NotCheckedUnknown
	}
	var buf [maxHeaders]byte
	headers := buf[:0]
	for _, k := range below {
		p := k.LayerContents()
		if len(p) > cap(headers)-len(headers) {
			return roce.NotCheckedUnknown
		}
		headers = append(headers, p...)
	}
	proto, udp := link.UDP, []byte(nil)
	switch below[0].LayerType() {
	case LayerTypeLRH:
		proto = link.InfiniBand
	case LayerTypeGRH:
		proto = link.RoCEv1
	default:
		at := max(len(headers)-udpSize, 0)
		headers, udp = headers[:at], headers[at:]
	}
	at := len(l.raw) - roce.ICRCSize
	sum, ok := roce.ICRC(proto, headers, udp, l.raw[:at])
	switch stored := binary.LittleEndian.Uint32(l.raw[at:]); {
	case !ok:
		return roce.NotCheckedUnknown
	case stored == sum:
		return roce.Good
	case stored == 0:
		return roce.NotCheckedZeroed
	}
	return roce.Bad
}

// VerifyICRC verifies the ICRC of the first BTH in a packet. The result is
// roce.Unchecked if there is none.
func VerifyICRC(p gopacket.Packet) roce.Verdict {
	var below [4]gopacket.Layer
	n := 0
	for _, l := range p.Layers() {
		switch l := l.(type) {
		case *layers.IPv4, *layers.IPv6, *LRH:
			n = 0
		case *GRH:
			if n != 1 || below[0].LayerType() != LayerTypeLRH {
				n = 0
			}
		case *layers.IPv6HopByHop, *layers.UDP:
		case *BTH:
			return l.VerifyICRC(below[:n]...)
		default:
			continue
		}
		if n < len(below) {
			below[n] = l
			n++
		}
	}
	return roce.Unchecked
}
