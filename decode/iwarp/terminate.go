package iwarp

import (
	"encoding/binary"
	"strconv"
)

// TerminateLayer is the layer that found the error.
type TerminateLayer uint8

// Layers of a Terminate.
const (
	LayerRDMAP TerminateLayer = iota
	LayerDDP
	LayerMPA
)

// TerminateLen is the size of a Terminate message without headers.
const TerminateLen = 4

const (
	terminateLength = 0x8000 // M: a DDP segment length follows
	terminateDDP    = 0x4000 // D: a DDP header follows
	terminateRDMAP  = 0x2000 // R: an RDMAP header follows
)

// Terminate is the payload of a Terminate message (RFC 5040 4.8):
//
//	+-------+-------+---------------+-+-+-+-------------------------+
//	| Layer | EType |  Error code   |M|D|R|        Reserved         |
//	+-------+-------+---------------+-+-+-+-------------------------+
//	| DDP segment length, if M      | terminated DDP header, if D   …
//	+-------------------------------+-------------------------------+
//	… terminated RDMAP header (28 bytes of a Read Request), if R    |
//
// At least TerminateLen bytes must be there.
type Terminate []byte

// Word is the first word, which holds everything but the headers.
func (t Terminate) Word() uint32 { return binary.BigEndian.Uint32(t) }

// Layer is the layer that found the error.
func (t Terminate) Layer() TerminateLayer { return TerminateLayer(t[0] >> 4) }

// EType is the kind of error, numbered separately in each layer.
func (t Terminate) EType() uint8 { return t[0] & 0x0f }

// Code is the error code, numbered separately in each kind.
func (t Terminate) Code() uint8 { return t[1] }

func (t Terminate) flags() uint16 { return binary.BigEndian.Uint16(t[2:]) }

// SegmentLength is the length of the terminated DDP segment, if it is there.
func (t Terminate) SegmentLength() (uint16, bool) {
	if t.flags()&terminateLength == 0 || len(t) < TerminateLen+2 {
		return 0, false
	}
	return binary.BigEndian.Uint16(t[TerminateLen:]), true
}

// DDPHeader is the header of the terminated segment (TaggedLen or UntaggedLen
// bytes), or nil.
func (t Terminate) DDPHeader() ULPDU {
	h, _ := t.headers()
	return h
}

// ReadRequest is the terminated Read Request, or nil.
func (t Terminate) ReadRequest() ReadRequest {
	_, r := t.headers()
	return r
}

func (t Terminate) headers() (ULPDU, ReadRequest) {
	rest := t[TerminateLen:]
	if t.flags()&terminateLength != 0 {
		if len(rest) < 2 {
			return nil, nil
		}
		rest = rest[2:]
	}
	if t.flags()&terminateDDP == 0 || len(rest) < ControlLen {
		return nil, nil
	}
	n := ULPDU(rest).HeaderLen()
	if len(rest) < n {
		return nil, nil
	}
	header := ULPDU(rest[:n:n])
	rest = rest[n:]
	if t.flags()&terminateRDMAP == 0 || len(rest) < ReadRequestLen {
		return header, nil
	}
	return header, ReadRequest(rest[:ReadRequestLen:ReadRequestLen])
}

// AppendTerminate adds the payload of a Terminate message to dst. header is
// the terminated DDP header and length the terminated segment's length; read
// is the Read Request in it. Either may be nil.
func AppendTerminate(dst []byte, layer TerminateLayer, etype, code uint8, length uint16, header ULPDU, read ReadRequest) []byte {
	var flags uint16
	if header != nil {
		flags = terminateLength | terminateDDP
		if read != nil {
			flags |= terminateRDMAP
		}
	}
	dst = append(dst, uint8(layer)<<4|etype&0x0f, code)
	dst = binary.BigEndian.AppendUint16(dst, flags)
	if header != nil {
		dst = binary.BigEndian.AppendUint16(dst, length)
		dst = append(dst, header...)
		dst = append(dst, read...)
	}
	return dst
}

var layerNames = [...]string{"RDMAP", "DDP", "MPA"}

func (l TerminateLayer) String() string {
	if int(l) < len(layerNames) {
		return layerNames[l]
	}
	return "layer " + strconv.Itoa(int(l))
}

var (
	etypeNames = [...][]string{
		LayerRDMAP: {"local catastrophic error", "remote protection error", "remote operation error"},
		LayerDDP:   {"local catastrophic error", "tagged buffer error", "untagged buffer error", "lower layer error"},
		LayerMPA:   {"MPA error"},
	}
	codesRDMAP = []string{
		"invalid STag", "base or bounds violation", "access rights violation",
		"STag not associated with RDMAP stream", "TO wrap", "invalid RDMAP version",
		"unexpected opcode", "catastrophic error of the stream", "catastrophic error",
		"STag cannot be invalidated",
	}
	codesTagged = []string{
		"invalid STag", "base or bounds violation", "STag not associated with DDP stream",
		"TO wrap", "invalid DDP version",
	}
	codesUntagged = []string{
		"", "invalid QN", "invalid MSN: no buffer", "invalid MSN: out of range", "invalid MO",
		"message too long for the buffer", "invalid DDP version",
	}
	codesMPA = []string{
		"", "TCP connection lost", "CRC error", "marker and length mismatch",
		"invalid MPA request or reply", "local catastrophic error", "insufficient IRD resources",
		"no matching RTR",
	}
)

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return ""
}

// terminateCode is the name of an error code; empty if it has none.
func terminateCode(layer TerminateLayer, etype, code uint8) string {
	switch {
	case layer == LayerRDMAP && code == 0xff:
		return "unspecified error"
	case layer == LayerRDMAP && etype != 0:
		return name(codesRDMAP, code)
	case layer == LayerDDP && etype == 1:
		return name(codesTagged, code)
	case layer == LayerDDP && etype == 2:
		return name(codesUntagged, code)
	case layer == LayerMPA && etype == 0:
		return name(codesMPA, code)
	}
	return ""
}

// String describes the error, from the layer down to the error code: "DDP: untagged buffer error: invalid
// MSN: no buffer".
func (t Terminate) String() string {
	layer, etype, code := t.Layer(), t.EType(), t.Code()
	s := layer.String() + ": "
	kind := ""
	if int(layer) < len(etypeNames) {
		kind = name(etypeNames[layer], etype)
	}
	if kind == "" {
		kind = "error type " + strconv.Itoa(int(etype))
	}
	s += kind
	if text := terminateCode(layer, etype, code); text != "" {
		return s + ": " + text
	}
	if code != 0 || (layer != LayerRDMAP && layer != LayerDDP) || etype != 0 {
		s += ": code " + strconv.Itoa(int(code))
	}
	return s
}

// Defined reports whether layer, kind and code are ones that exist. Errors that a
// layer below DDP found have codes of that layer.
func (t Terminate) Defined() bool {
	layer, etype, code := t.Layer(), t.EType(), t.Code()
	if int(layer) >= len(etypeNames) || name(etypeNames[layer], etype) == "" {
		return false
	}
	switch {
	case layer == LayerDDP && etype == 3:
		return true
	case layer != LayerMPA && etype == 0:
		return code == 0
	}
	return terminateCode(layer, etype, code) != ""
}

// Complete reports whether the headers that its flags announce are there.
func (t Terminate) Complete() bool {
	f := t.flags()
	_, length := t.SegmentLength()
	header, read := t.headers()
	return (f&terminateLength == 0 || length) && (f&terminateDDP == 0 || header != nil) && (f&terminateRDMAP == 0 || read != nil)
}
