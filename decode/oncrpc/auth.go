package oncrpc

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Flavor is auth_flavor.
type Flavor uint32

// Authentication flavors. The last three are pseudo flavors: they name a way
// to use RPCSEC_GSS in MOUNT and SECINFO results (RFC 2623) and are not seen
// in RPC headers.
const (
	AuthNone   Flavor = 0
	AuthSys    Flavor = 1
	AuthShort  Flavor = 2
	AuthDH     Flavor = 3
	AuthKerb   Flavor = 4
	AuthRSA    Flavor = 5
	RPCSecGSS  Flavor = 6
	AuthTLS    Flavor = 7 // RFC 9289
	PseudoKrb5 Flavor = 390003
	PseudoKrbI Flavor = 390004
	PseudoKrbP Flavor = 390005
)

var flavorNames = [...]string{
	"AUTH_NONE", "AUTH_SYS", "AUTH_SHORT", "AUTH_DH", "AUTH_KERB", "AUTH_RSA", "RPCSEC_GSS", "AUTH_TLS",
}

func (f Flavor) String() string {
	switch f {
	case PseudoKrb5:
		return "RPC_AUTH_GSS_KRB5"
	case PseudoKrbI:
		return "RPC_AUTH_GSS_KRB5I"
	case PseudoKrbP:
		return "RPC_AUTH_GSS_KRB5P"
	}
	return name(flavorNames[:], uint32(f))
}

// maxAuth is the largest body of an opaque_auth in bytes (RFC 5531, section 8.2).
const maxAuth = 400

// Auth is opaque_auth: a credential or a verifier. Body aliases the message.
type Auth struct {
	Flavor Flavor
	Body   []byte
}

// Size is the encoded size in bytes.
func (a Auth) Size() int { return 4 + xdr.SizeOpaque(len(a.Body)) }

// Append encodes a.
func (a Auth) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(a.Flavor))
	return xdr.AppendOpaque(b, a.Body)
}

// Limits of AUTH_SYS (RFC 5531, appendix A).
const (
	maxMachine = 255
	maxGIDs    = 16
)

// Sys is the credential of AUTH_SYS (authsys_parms).
type Sys struct {
	Stamp    uint32
	Machine  []byte // aliases the message
	UID, GID uint32
	// The first Count entries of GIDs are the supplementary groups.
	GIDs  [maxGIDs]uint32
	Count int
}

// Decode reads the body of a credential. A failure is a false result; the
// fields before the failure are valid.
func (s *Sys) Decode(body []byte) bool {
	s.Stamp, s.Machine, s.UID, s.GID, s.Count = 0, nil, 0, 0, 0
	if len(body) < 8 {
		return false
	}
	s.Stamp = binary.BigEndian.Uint32(body)
	n := binary.BigEndian.Uint32(body[4:])
	off := 8 + (int64(n)+3)&^3
	if n > maxMachine || off+12 > int64(len(body)) {
		return false
	}
	s.Machine = body[8 : 8+n : 8+n]
	body = body[off:]
	s.UID = binary.BigEndian.Uint32(body)
	s.GID = binary.BigEndian.Uint32(body[4:])
	count := binary.BigEndian.Uint32(body[8:])
	body = body[12:]
	if count > maxGIDs || int(count)*4 > len(body) {
		return false
	}
	for s.Count < int(count) {
		s.GIDs[s.Count] = binary.BigEndian.Uint32(body[4*s.Count:])
		s.Count++
	}
	return true
}

// Size is the encoded size in bytes.
func (s *Sys) Size() int { return 4 + xdr.SizeOpaque(len(s.Machine)) + 12 + 4*s.Count }

// Append encodes the body of a credential.
func (s *Sys) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, s.Stamp)
	b = xdr.AppendOpaque(b, s.Machine)
	b = xdr.AppendUint32(b, s.UID)
	b = xdr.AppendUint32(b, s.GID)
	b = xdr.AppendUint32(b, uint32(s.Count))
	for _, g := range s.GIDs[:s.Count] {
		b = xdr.AppendUint32(b, g)
	}
	return b
}
