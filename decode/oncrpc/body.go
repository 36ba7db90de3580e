package oncrpc

import (
	"bytes"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// BodyKind says what follows the RPC header.
type BodyKind uint8

// Kinds of bodies.
const (
	BodyNone      BodyKind = iota // nothing: the call failed in the RPC layer
	BodyPlain                     // arguments or results
	BodyIntegrity                 // arguments or results in rpc_gss_integ_data
	BodyPrivacy                   // rpc_gss_priv_data: encrypted
	BodyInit                      // context creation: a token, or GSSInitResult
	BodyUnknown                   // protected in a way that is not known, or taken away: a checksum of zeros seals nothing
)

var bodyKindNames = [...]string{"none", "plain", "integrity", "privacy", "init", "unknown"}

func (k BodyKind) String() string { return name(bodyKindNames[:], uint32(k)) }

// Protection is how the arguments and the results of a call are wrapped. Only the call says so; keep it until
// the reply arrives. The zero value is "not".
type Protection struct {
	kind BodyKind
}

// Kind is the kind of body that a call and a successful reply have.
func (p Protection) Kind() BodyKind {
	if p.kind == BodyNone {
		return BodyPlain
	}
	return p.kind
}

// Protection reports how the call and its reply are wrapped.
//
// Linux sends the arguments of RPCSEC_GSS_DESTROY, which has none, without wrapping; with RFC 5403's channel
// protection nothing is wrapped.
func (c *Call) Protection() Protection {
	if c.Cred.Flavor != RPCSecGSS {
		return Protection{}
	}
	if c.GSS.Handle == nil {
		return Protection{BodyUnknown}
	}
	switch c.GSS.Proc {
	case GSSInit, GSSContinueInit:
		return Protection{BodyInit}
	case GSSDestroy:
		return Protection{}
	case GSSData:
		switch c.GSS.Service {
		case ServiceNone, ServiceChannel:
			return Protection{}
		case ServiceIntegrity:
			return Protection{BodyIntegrity}
		case ServicePrivacy:
			return Protection{BodyPrivacy}
		}
	}
	return Protection{BodyUnknown}
}

// Body is where the arguments or results of a message are. Offsets count from
// the start of the RPC message; what travels in chunks is not counted.
type Body struct {
	Kind BodyKind
	// Offset and Length (bytes) delimit the arguments or results; for
	// BodyPrivacy the encrypted data, for BodyInit and BodyUnknown all that
	// follows the header.
	Offset, Length int
	// Data is the captured part of that range.
	Data []byte
	// Sequence and Checksum belong to BodyIntegrity; Checksum is nil if the
	// capture cut it.
	Sequence uint32
	Checksum []byte
	// Malformed says that the lengths of a wrapped body contradict the size of
	// the message. Offset is then the start of the body, and Length 0.
	Malformed bool
	// Unsealed says that the checksum of BodyIntegrity is missing, or that its length contradicts the size of the message.
	Unsealed bool
}

// Body finds the arguments of a decoded call.
func (c *Call) Body() (b Body) {
	c.BodyInto(&b)
	return b
}

// BodyInto is Body, into memory of the caller's.
func (c *Call) BodyInto(b *Body) {
	if c.Cred.Flavor != RPCSecGSS {
		c.plain(b)
		return
	}
	c.body(c.Protection().Kind(), b)
}

// Body finds the results of a decoded reply to a call that was protected by p.
func (r *Reply) Body(p Protection) (b Body) {
	r.BodyInto(p, &b)
	return b
}

// BodyInto is Body, into memory of the caller's.
func (r *Reply) BodyInto(p Protection, b *Body) {
	if !r.Succeeded() {
		*b = Body{Kind: BodyNone, Offset: r.Length}
		return
	}
	if p == (Protection{}) {
		r.plain(b)
		return
	}
	r.body(p.Kind(), b)
}

// plain notes that all that follows the header is arguments or results.
func (m *message) plain(b *Body) {
	b.Kind, b.Offset, b.Length, b.Sequence, b.Malformed = BodyPlain, m.Length, m.PayloadLength, 0, false
	b.Data, b.Checksum, b.Unsealed = m.Payload, nil, false
}

func (m *message) body(k BodyKind, b *Body) {
	m.plain(b)
	b.Kind = k
	switch k {
	case BodyIntegrity:
		m.integrity(b)
	case BodyPrivacy:
		m.privacy(b)
	}
}

// integrity unwraps rpc_gss_integ_data (RFC 2203, section 5.3.2.2): an opaque
// that holds the sequence number and the arguments, and an opaque with the
// checksum over it.
func (m *message) integrity(body *Body) {
	b, full := m.Payload, m.PayloadLength
	body.Data, body.Length = nil, 0
	if len(b) < 8 {
		if body.Malformed = full < 8; !body.Malformed { // cut before the arguments, which cannot be longer than the rest
			body.Offset += 8
			body.Length = full - 8
		}
		return
	}
	n := binary.BigEndian.Uint32(b)
	if n < 4 || uint64(n) > uint64(full-4) {
		body.Malformed = true
		return
	}
	body.Sequence = binary.BigEndian.Uint32(b[4:])
	body.Offset += 8
	body.Length = int(n) - 4
	end := 4 + int(n)
	body.Data = b[8:min(end, len(b)):min(end, len(b))]
	end = (end + 3) &^ 3
	if end+4 > full {
		body.Unsealed = true
		return
	}
	if end < len(b) {
		var r xdr.Reader
		r.Reset(b[end:], full-end)
		body.Checksum = r.Opaque(0)
		body.Unsealed = r.Failed() && !r.Cut()
		if n := len(body.Checksum); n > 0 && bytes.Count(body.Checksum, []byte{0}) == n {
			m.plain(body)
			body.Kind = BodyUnknown
		}
	}
}

// privacy finds the data of rpc_gss_priv_data (RFC 2203, section 5.3.2.3).
func (m *message) privacy(body *Body) {
	b, full := m.Payload, m.PayloadLength
	body.Data, body.Length = nil, 0
	if len(b) < 4 {
		body.Malformed = full < 4
		return
	}
	n := binary.BigEndian.Uint32(b)
	if uint64(n) > uint64(full-4) {
		body.Malformed = true
		return
	}
	body.Offset += 4
	body.Length = int(n)
	end := min(4+int(n), len(b))
	body.Data = b[4:end:end]
}
