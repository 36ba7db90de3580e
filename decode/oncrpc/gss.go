package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// GSSProc is rpc_gss_proc_t: what a message of RPCSEC_GSS is for.
type GSSProc uint32

// Control procedures of RPCSEC_GSS (RFC 2203, section 5; RFC 5403; RFC 7861).
const (
	GSSData         GSSProc = 0
	GSSInit         GSSProc = 1
	GSSContinueInit GSSProc = 2
	GSSDestroy      GSSProc = 3
	GSSBindChannel  GSSProc = 4
	GSSCreate       GSSProc = 5
	GSSList         GSSProc = 6
)

var gssProcNames = [...]string{
	"RPCSEC_GSS_DATA", "RPCSEC_GSS_INIT", "RPCSEC_GSS_CONTINUE_INIT", "RPCSEC_GSS_DESTROY",
	"RPCSEC_GSS_BIND_CHANNEL", "RPCSEC_GSS_CREATE", "RPCSEC_GSS_LIST",
}

func (p GSSProc) String() string { return name(gssProcNames[:], uint32(p)) }

// Service is rpc_gss_service_t: how the arguments and results are protected.
type Service uint32

// Services of RPCSEC_GSS.
const (
	ServiceNone      Service = 1
	ServiceIntegrity Service = 2
	ServicePrivacy   Service = 3
	ServiceChannel   Service = 4 // RFC 5403: the channel protects the data
)

var serviceNames = [...]string{
	"", "rpc_gss_svc_none", "rpc_gss_svc_integrity", "rpc_gss_svc_privacy", "rpc_gss_svc_channel_prot",
}

func (s Service) String() string { return name(serviceNames[:], uint32(s)) }

// GSSCred is the credential of RPCSEC_GSS (rpc_gss_cred_t). Versions 1, 2 and
// 3 have the same layout.
type GSSCred struct {
	Version  uint32
	Proc     GSSProc
	Sequence uint32
	Service  Service
	Handle   []byte // of the context; aliases the message
}

// Decode reads the body of a credential. A failure is a false result; the
// fields before the failure are valid.
func (c *GSSCred) Decode(body []byte) bool {
	*c = GSSCred{}
	if len(body) < 4 {
		return false
	}
	c.Version = binary.BigEndian.Uint32(body)
	if c.Version < 1 || c.Version > 3 || len(body) < 20 {
		return false
	}
	c.Proc = GSSProc(binary.BigEndian.Uint32(body[4:]))
	c.Sequence = binary.BigEndian.Uint32(body[8:])
	c.Service = Service(binary.BigEndian.Uint32(body[12:]))
	n := binary.BigEndian.Uint32(body[16:])
	if uint64(n) > uint64(len(body)-20) {
		return false
	}
	c.Handle = body[20 : 20+n : 20+n]
	return true
}

// Size is the encoded size in bytes.
func (c *GSSCred) Size() int { return 16 + xdr.SizeOpaque(len(c.Handle)) }

// Append encodes the body of a credential.
func (c *GSSCred) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, c.Version)
	b = xdr.AppendUint32(b, uint32(c.Proc))
	b = xdr.AppendUint32(b, c.Sequence)
	b = xdr.AppendUint32(b, uint32(c.Service))
	return xdr.AppendOpaque(b, c.Handle)
}

// GSSInitResult is the result of context creation (rpc_gss_init_res). Its
// slices alias the message.
type GSSInitResult struct {
	Handle []byte
	Major  uint32 // GSS-API major status, see GSSMajorName
	Minor  uint32
	Window uint32 // sequence window
	Token  []byte
}

// Decode reads the body of an INIT or CONTINUE_INIT reply. A failure is a
// false result; the fields before the failure are valid.
func (g *GSSInitResult) Decode(body []byte) bool {
	*g = GSSInitResult{}
	var r xdr.Reader
	r.Reset(body, len(body))
	g.Handle = r.Opaque(0)
	g.Major = r.Uint32()
	g.Minor = r.Uint32()
	g.Window = r.Uint32()
	g.Token = r.Opaque(0)
	return !r.Failed()
}

// Size is the encoded size in bytes.
func (g *GSSInitResult) Size() int {
	return xdr.SizeOpaque(len(g.Handle)) + 12 + xdr.SizeOpaque(len(g.Token))
}

// Append encodes the result.
func (g *GSSInitResult) Append(b []byte) []byte {
	b = xdr.AppendOpaque(b, g.Handle)
	b = xdr.AppendUint32(b, g.Major)
	b = xdr.AppendUint32(b, g.Minor)
	b = xdr.AppendUint32(b, g.Window)
	return xdr.AppendOpaque(b, g.Token)
}

// Routine errors of the GSS-API (RFC 2743, section 1.2.1.1), which stand in
// bits 16 to 23 of a major status (RFC 2744, section 3.9.1).
var gssRoutineNames = [...]string{
	"GSS_S_COMPLETE", "GSS_S_BAD_MECH", "GSS_S_BAD_NAME", "GSS_S_BAD_NAMETYPE", "GSS_S_BAD_BINDINGS",
	"GSS_S_BAD_STATUS", "GSS_S_BAD_SIG", "GSS_S_NO_CRED", "GSS_S_NO_CONTEXT", "GSS_S_DEFECTIVE_TOKEN",
	"GSS_S_DEFECTIVE_CREDENTIAL", "GSS_S_CREDENTIALS_EXPIRED", "GSS_S_CONTEXT_EXPIRED", "GSS_S_FAILURE",
	"GSS_S_BAD_QOP", "GSS_S_UNAUTHORIZED", "GSS_S_UNAVAILABLE", "GSS_S_DUPLICATE_ELEMENT", "GSS_S_NAME_NOT_MN",
}

// GSSMajorName names a GSS-API major status; empty if it has no name.
func GSSMajorName(major uint32) string {
	if major == 1 {
		return "GSS_S_CONTINUE_NEEDED"
	}
	if major>>24 != 0 {
		return ""
	}
	return name(gssRoutineNames[:], major>>16)
}
