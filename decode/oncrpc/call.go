package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Call is the header of a call (RFC 5531, section 9):
//
//	 0         4         8         12        16        20        24
//	+---------+---------+---------+---------+---------+---------+
//	| XID     | CALL 0  | Vers 2  | Program | Version | Proc    |
//	+---------+---------+---------+---------+---------+---------+
//	| Flavor  | Length  | Credential …                          |
//	+---------+---------+---------------------------------------+
//	| Flavor  | Length  | Verifier …                            |
//	+---------+---------+---------------------------------------+
//
// Decode refills it; its slices alias the message.
type Call struct {
	XID        uint32
	RPCVersion uint32
	Program    uint32
	Version    uint32
	Procedure  uint32
	Cred, Verf Auth
	// GSS is the credential of RPCSEC_GSS. It is zero if Cred has another
	// flavor, and GSS.Handle is nil if the credential is malformed.
	GSS GSSCred

	message
}

const callFixed = 24

// Decode reads the header at the start of b, the captured part of a message
// of full bytes (a full less than len(b) counts as len(b)).
//
// An error is an *xdr.Error that belongs to c; the fields before the error
// are valid. If c.Cut is set as well, the header is well-formed as far as it
// was captured.
func (c *Call) Decode(b []byte, full int) error {
	if full < len(b) {
		full = len(b)
	}
	end := CallHeader(b)
	if end == 0 {
		return c.decode(b, full)
	}
	h := (*[callFixed + 8]byte)(b)
	flavor, n := Flavor(binary.BigEndian.Uint32(h[24:])), binary.BigEndian.Uint32(h[28:])
	// The usual call, in the order that needs one write barrier for all pointers.
	c.XID, c.RPCVersion = binary.BigEndian.Uint32(h[:]), Version
	c.Program, c.Version = binary.BigEndian.Uint32(h[12:]), binary.BigEndian.Uint32(h[16:])
	c.Procedure = binary.BigEndian.Uint32(h[20:])
	c.Cred.Flavor, c.Verf.Flavor = flavor, AuthNone
	c.GSS.Version, c.GSS.Proc, c.GSS.Sequence, c.GSS.Service = 0, 0, 0, 0
	c.Cut, c.err.Kind = false, xdr.None
	c.Length, c.PayloadLength = end, full-end
	c.Payload = b[end:len(b):len(b)]
	c.Cred.Body = b[callFixed+8 : callFixed+8+n : callFixed+8+n]
	c.Verf.Body, c.GSS.Handle = c.Payload[:0:0], nil
	return nil
}

// decode is Decode for calls that are cut or malformed, that use RPCSEC_GSS, or that have a verifier.
func (c *Call) decode(b []byte, full int) error {
	c.reset()
	c.Cred, c.Verf = Auth{}, Auth{}
	c.GSS = GSSCred{} // by itself: else a copy of zeros is made first
	if len(b) < callFixed {
		c.XID, c.RPCVersion, c.Program, c.Version, c.Procedure = 0, 0, 0, 0, 0
		if len(b) >= 4 {
			c.XID = binary.BigEndian.Uint32(b)
		}
		return c.fail(xdr.Short, len(b)&^3, full, len(b), "call_body")
	}
	c.XID = binary.BigEndian.Uint32(b)
	c.RPCVersion = binary.BigEndian.Uint32(b[8:])
	c.Program = binary.BigEndian.Uint32(b[12:])
	c.Version = binary.BigEndian.Uint32(b[16:])
	c.Procedure = binary.BigEndian.Uint32(b[20:])
	if MsgType(binary.BigEndian.Uint32(b[4:])) != TypeCall {
		return c.fail(xdr.Value, 4, full, len(b), "mtype")
	}
	if c.RPCVersion != Version {
		return c.fail(xdr.Value, 8, full, len(b), "rpcvers")
	}
	off, err := c.auth(&c.Cred, b, callFixed, full, "cred")
	if err != nil {
		return err
	}
	if c.Cred.Flavor == RPCSecGSS {
		c.GSS.Decode(c.Cred.Body)
	}
	if off, err = c.auth(&c.Verf, b, off, full, "verf"); err != nil {
		return err
	}
	c.payload(b, off, full)
	return nil
}

// Size is the encoded size of the header in bytes.
func (c *Call) Size() int { return callFixed + c.Cred.Size() + c.Verf.Size() }

// Append encodes the header. The credential is taken from Cred.
func (c *Call) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, c.XID)
	b = xdr.AppendUint32(b, uint32(TypeCall))
	b = xdr.AppendUint32(b, c.RPCVersion)
	b = xdr.AppendUint32(b, c.Program)
	b = xdr.AppendUint32(b, c.Version)
	b = xdr.AppendUint32(b, c.Procedure)
	b = c.Cred.Append(b)
	return c.Verf.Append(b)
}
