package layers

import (
	"encoding/binary"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// RPCoverRDMA is the transport header of RPC-over-RDMA (RFC 8166) of the
// versions 0, 1 and 2.
type RPCoverRDMA struct {
	layers.BaseLayer
	// Header holds the fields. Its lists belong to the layer, which fills them again with the next packet.
	Header rpcrdma.Header

	next gopacket.LayerType
}

// open is the length of a message whose end is unknown: longer than any message.
const open = 1 << 30

// sendType determines what is in a Send: RPC-over-RDMA, if all of the header that is there is plausible.
// whole says that data is the whole message.
func sendType(data []byte, whole bool) gopacket.LayerType {
	full := len(data)
	if !whole {
		full = open
	}
	if rpcrdma.Plausible(data, full) || rpcrdma.PlausibleV2(data, full) || rpcrdma.PlausibleV0(data, full) {
		return LayerTypeRPCoverRDMA
	}
	return gopacket.LayerTypePayload
}

// LayerType is LayerTypeRPCoverRDMA.
func (l *RPCoverRDMA) LayerType() gopacket.LayerType { return LayerTypeRPCoverRDMA }

// CanDecode is LayerTypeRPCoverRDMA.
func (l *RPCoverRDMA) CanDecode() gopacket.LayerClass { return LayerTypeRPCoverRDMA }

// NextLayerType is LayerTypeRPC if the RPC message, or its start, follows.
func (l *RPCoverRDMA) NextLayerType() gopacket.LayerType { return l.next }

// DecodeFromBytes implements gopacket.DecodingLayer. A header that is longer
// than data is an error; Header then holds what could be decoded.
func (l *RPCoverRDMA) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	l.BaseLayer, l.next = layers.BaseLayer{}, gopacket.LayerTypeZero
	h := &l.Header
	if h.Decode(data, len(data)) != nil {
		// Is it wrong, or does it go on in the next packet?
		err := h.Decode(data, open)
		if h.Cut {
			df.SetTruncated()
		}
		set(&l.BaseLayer, data, min(h.Length, len(data)))
		return fmt.Errorf("RPC-over-RDMA: %w", copyError(err))
	}
	set(&l.BaseLayer, data, h.Length)
	if len(l.Payload) == 0 {
		return nil
	}
	l.next = gopacket.LayerTypePayload
	if m, ok := oncrpc.Peek(l.Payload); ok && m.XID == h.XID && h.Inline() {
		l.next = LayerTypeRPC
	}
	return nil
}

// String is the text that gopacket prints for the layer: the lists as keys,
// as rpcrdma.Header.AppendKey writes them.
func (l *RPCoverRDMA) String() string {
	h := &l.Header
	s := fmt.Sprintf("{XID=%#x Version=%d Credits=%d Type=%s", h.XID, h.Version, h.Credits, h.Type)
	if h.Type == rpcrdma.TypeError {
		return s + fmt.Sprintf(" Error=%d Low=%d High=%d}", h.Error, h.Low, h.High)
	}
	if key := h.Key(); key != "" {
		s += " Lists=" + key
	}
	return s + "}"
}

// SerializeTo implements gopacket.SerializableLayer.
func (l *RPCoverRDMA) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	n := l.Header.Size()
	p, err := b.PrependBytes(n)
	if err != nil {
		return err
	}
	l.Header.Append(p[:0:n])
	return nil
}

// RPC is the header of an ONC RPC call or reply (RFC 5531). Payload is the
// arguments or results, as far as they are inline.
type RPC struct {
	layers.BaseLayer
	Type oncrpc.MsgType
	// Call or Reply is set, as Type says.
	Call  oncrpc.Call
	Reply oncrpc.Reply
}

// LayerType is LayerTypeRPC.
func (l *RPC) LayerType() gopacket.LayerType { return LayerTypeRPC }

// CanDecode is LayerTypeRPC.
func (l *RPC) CanDecode() gopacket.LayerClass { return LayerTypeRPC }

// NextLayerType is a payload.
func (l *RPC) NextLayerType() gopacket.LayerType {
	if len(l.Payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return gopacket.LayerTypePayload
}

// String is the text that gopacket prints for the layer.
func (l *RPC) String() string {
	if l.Type == oncrpc.TypeReply {
		return fmt.Sprintf("{%s XID=%#x Status=%s}", l.Type, l.Reply.XID, l.Reply.Status())
	}
	return fmt.Sprintf("{%s XID=%#x Program=%d Version=%d Procedure=%d Cred=%s}", l.Type, l.Call.XID, l.Call.Program, l.Call.Version, l.Call.Procedure, l.Call.Cred.Flavor)
}

// XID is the transaction id.
func (l *RPC) XID() uint32 {
	if l.Type == oncrpc.TypeReply {
		return l.Reply.XID
	}
	return l.Call.XID
}

// DecodeFromBytes implements gopacket.DecodingLayer.
func (l *RPC) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	*l = RPC{}
	if len(data) < 8 {
		df.SetTruncated()
		return fmt.Errorf("RPC: %d bytes are too few for a header", len(data))
	}
	l.Type = oncrpc.MsgType(binary.BigEndian.Uint32(data[4:]))
	var err error
	n := 0
	switch l.Type {
	case oncrpc.TypeCall:
		if err = l.Call.Decode(data, len(data)); err != nil {
			err = l.Call.Decode(data, open)
		}
		n = l.Call.Length
	case oncrpc.TypeReply:
		if err = l.Reply.Decode(data, len(data)); err != nil {
			err = l.Reply.Decode(data, open)
		}
		n = l.Reply.Length
	default:
		return fmt.Errorf("RPC: message type %d is neither call nor reply", uint32(l.Type))
	}
	set(&l.BaseLayer, data, min(n, len(data)))
	if err != nil {
		if l.Call.Cut || l.Reply.Cut {
			df.SetTruncated()
		}
		return fmt.Errorf("RPC: %w", copyError(err))
	}
	return nil
}

// SerializeTo implements gopacket.SerializableLayer. FixLengths sets the
// version of RPC in a call that has none.
func (l *RPC) SerializeTo(b gopacket.SerializeBuffer, opts gopacket.SerializeOptions) error {
	reply := l.Type == oncrpc.TypeReply
	if !reply && l.Type != oncrpc.TypeCall {
		return fmt.Errorf("RPC: message type %d is neither call nor reply", uint32(l.Type))
	}
	if opts.FixLengths && !reply && l.Call.RPCVersion == 0 {
		l.Call.RPCVersion = oncrpc.Version
	}
	n := l.Call.Size()
	if reply {
		n = l.Reply.Size()
	}
	p, err := b.PrependBytes(n)
	if err != nil {
		return err
	}
	if reply {
		l.Reply.Append(p[:0:n])
	} else {
		l.Call.Append(p[:0:n])
	}
	return nil
}
