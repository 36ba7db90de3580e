package fabric

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Source is how the layer above a connection is known.
type Source uint8

// Sources.
const (
	SourceNone  Source = iota
	SourceSetup        // by service id or port of connection management
	SourcePort         // by a TCP port
	SourceUser         // the user said so
	SourceGuess        // by what the first messages look like
)

var sourceNames = [...]string{"unknown", "setup", "port", "user", "guess"}

func (s Source) String() string { return sourceNames[s] }

// Service is the layer above a connection. Name is "unknown" if the layer is not known.
type Service struct {
	Name   string
	Source Source
}

// String marks a guess with a question mark.
func (s Service) String() string {
	if s.Source == SourceGuess {
		return s.Name + "?"
	}
	return s.Name
}

var unknown = Service{Name: "unknown"}

// Names of services that can be recognised in several ways. rdma.ServiceName has those of ports.
const (
	nfs       = "NFS/RDMA"
	nvme      = "NVMe-oF"
	iser      = "iSER"
	srp       = "SRP"
	smbDirect = "SMB Direct"
	lustre    = "Lustre"
	gluster   = "GlusterFS"
	rpcRDMA   = "RPC-over-RDMA"
)

// shortNames are the words for --decode-as.
var shortNames = map[string]string{
	"nfs": nfs, "nvme": nvme, "iser": iser, "srp": srp, "smb": smbDirect, "lustre": lustre, "glusterfs": gluster, "rpcrdma": rpcRDMA,
	"perftest": "perftest", "rping": "rping", "mpi": "MPI", "nccl": "NCCL",
}

// ServiceWords are what ParseDecodeAs takes as services.
func ServiceWords() []string {
	var words []string
	for w := range shortNames {
		words = append(words, w)
	}
	slices.Sort(words)
	return words
}

// ParseDecodeAs reads PORT=SERVICE, or 0xID=SERVICE with a service id of InfiniBand
// connection management, into m.
func ParseDecodeAs(m map[uint64]string, s string) error {
	id, word, ok := strings.Cut(s, "=")
	name := shortNames[strings.ToLower(strings.TrimSpace(word))]
	if !ok || name == "" {
		return fmt.Errorf("%q is not PORT=SERVICE; services are %s", s, strings.Join(ServiceWords(), ", "))
	}
	id = strings.TrimSpace(id)
	bits := 16
	if strings.HasPrefix(id, "0x") {
		bits = 64
	}
	n, err := strconv.ParseUint(id, 0, bits)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is neither a port nor a service id, such as 4420 or 0x1062710", id)
	}
	m[n] = name
	return nil
}

// Carries returns what a decoder asks about connections (transaction.Options.Carries) if the user has given services;
// nil if there are none.
func Carries(given map[uint64]string) func(*rdma.Connection) (yes, known bool) {
	if len(given) == 0 {
		return nil
	}
	return func(c *rdma.Connection) (yes, known bool) {
		s := NameService(c, 1, given)
		return s.Name == nfs || s.Name == rpcRDMA, s.Source == SourceUser
	}
}

// service names the layer above a connection, as far as it is known.
func (k *conn) service(r *Recorder) Service {
	if k.named {
		return k.name
	}
	k.name = NameService(k.c, 1, r.opt.DecodeAs)
	if k.name.Source == SourceNone && k.hint != "" {
		k.name = Service{k.hint, SourceGuess}
	}
	// A captured setup comes before all operations, a hint with the first Send.
	k.named = k.name.Source != SourceNone
	return k.name
}

// NameService names the layer above a connection by its setup or ports, as given
// ports and service ids say first. The port of the server, side 1 as a rule, is looked at first: a
// client's may have some meaning, too.
func NameService(c *rdma.Connection, server rdma.Side, given map[uint64]string) Service {
	for side := range c.Setup {
		s := &c.Setup[side]
		if s.ServiceID == 0 {
			continue
		}
		if n := given[s.ServiceID]; n != "" {
			return Service{n, SourceUser}
		}
		if _, port, ok := ibcm.ServiceID(s.ServiceID).IP(); ok {
			if n := given[uint64(port)]; n != "" {
				return Service{n, SourceUser}
			}
			if n := rdma.ServiceOn(c.Fabric, port); n != "" {
				return Service{n, SourceSetup}
			}
			continue
		}
		if loginSRP(s.PrivateBytes[:min(int(s.PrivateBytesLen), len(s.PrivateBytes))]) {
			return Service{srp, SourceGuess}
		}
	}
	if c.Fabric != rdma.IWARP && c.Fabric != rdma.TCP && c.Fabric != rdma.UDP {
		return unknown
	}
	for _, i := range [2]rdma.Side{server, server.Other()} {
		if n := given[uint64(c.Ends[i].Port)]; n != "" {
			return Service{n, SourceUser}
		}
	}
	port, other := c.Ends[server].Port, c.Ends[server.Other()].Port
	if rdma.ServiceName(port) == "" && port >= ephemeral && other < ephemeral && other >= reserved {
		port = other // the first packet that was captured is one of the server
	}
	if n := rdma.ServiceOn(c.Fabric, port); n != "" {
		return Service{n, SourcePort}
	}
	return unknown
}

// Client ports, as in Linux: with privileges those below reserved, otherwise those from ephemeral
// on.
const (
	reserved  = 1024
	ephemeral = 32768
)

// loginSRP reports whether the private data of a connection request can be an
// SRP_LOGIN_REQ (T10 SRP, 6.2): its code, the length of an information unit, and
// the formats of buffers, of which direct and indirect exist.
func loginSRP(b []byte) bool {
	if len(b) < 64 || b[0] != 0 {
		return false
	}
	for _, x := range b[1:8] {
		if x != 0 {
			return false
		}
	}
	size, formats := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint16(b[24:])
	return size >= 64 && size <= 1<<20 && formats != 0 && formats&^6 == 0
}

// guessMessages is how many Sends of a connection are examined.
const guessMessages = 8

// guess examines a Send to guess the layer above.
func (k *conn) guess(b []byte, length uint32, _ rdma.Side) {
	if k.hint == "" {
		k.hint = guess(b, length)
	}
	k.messages++
	k.guessed = k.hint != "" || k.messages >= guessMessages
}

const (
	smbHeader   = 24   // where the data begins in a Data Transfer of SMB Direct
	connectData = 1024 // bytes of the data of Connect (NVMe-oF 1.1, 3.3)
)

// guessRPC names the layer by the program of a call without chunks. b begins with the message type of RFC 8166,
// section 4.1.
func guessRPC(b []byte) string {
	const header, program = 16, 12 // type and three empty lists; XID, CALL and version of RPC
	if len(b) < header+program+4 || [header]byte(b) != [header]byte{} || binary.BigEndian.Uint32(b[header+4:]) != 0 {
		return rpcRDMA
	}
	switch binary.BigEndian.Uint32(b[header+program:]) {
	case 100003, 100227: // with NFSACL
		return nfs
	case 1238433, 1238437, 1238463, 1298433, 1298437, 4867634, 14398633, 34123456, 52743234, 123451501:
		// The programs of glusterd, bricks and clients; its RDMA transport has the header of RFC 5666.
		return gluster
	}
	return rpcRDMA
}

// guess names the layer that a message looks to be of; "" if it looks like none.
func guess(b []byte, length uint32) string {
	if len(b) < 4 {
		return ""
	}
	switch binary.LittleEndian.Uint32(b) {
	case 0x0be91b91, 0x911be90b: // LNET_PROTO_IB_MAGIC, in either order
		return lustre
	}
	if isSMB(b, length) {
		return smbDirect
	}
	if isNVMe(b, length) {
		return nvme
	}
	if len(b) >= 76 && b[0]&0xf0 == 0x10 && (b[28]&0x3f == 3 || b[28]&0x3f == 1 && [3]byte(b[1:4]) == [3]byte{}) {
		// iSER control-type header (RFC 7145, section 9.2) with an iSCSI Login Request or SCSI Command.
		return iser
	}
	if len(b) >= 28 {
		version, credits, kind := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
		if version == 1 && credits > 0 && credits <= 1<<16 && kind <= 4 {
			return guessRPC(b[12:])
		}
	}
	return ""
}

// isSMB reports whether a message looks like one of SMB Direct.
func isSMB(b []byte, length uint32) bool {
	switch {
	case len(b) >= 20 && length == 20 && [6]byte(b) == [6]byte{0, 1, 0, 1, 0, 0}:
		return true // Negotiate Request: versions 1.0 to 1.0, reserved (MS-SMBD 2.2.1)
	case len(b) >= 32 && length == 32 && [8]byte(b) == [8]byte{0, 1, 0, 1, 0, 1, 0, 0}:
		return true // Negotiate Response (MS-SMBD 2.2.2)
	}
	// Data Transfer with the header of SMB2, or an encrypted one (MS-SMBD 2.2.3).
	return len(b) >= 28 && binary.LittleEndian.Uint32(b[12:]) == smbHeader && (string(b[24:28]) == "\xfeSMB" || string(b[24:28]) == "\xfdSMB")
}

// isNVMe reports whether a message looks like a command capsule of NVMe over Fabrics.
func isNVMe(b []byte, length uint32) bool {
	if len(b) < 64 {
		return false
	}
	switch b[0] {
	case 0x7f:
		// The opcode of Fabrics commands and an SGL (NVMe-oF 1.1, 3); Connect with its data.
		return (length == 64 || length == 64+connectData && b[4] == 1) && b[4] <= 0x18 && b[1]&0xc0 == 0x40
	case 1, 2:
		// Write or Read of a namespace, with a keyed SGL data block (NVMe base, 4.4).
		return length == 64 && b[1]&0xc3 == 0x40 && b[39]&0xf0 == 0x40 && binary.LittleEndian.Uint32(b[4:]) != 0
	}
	return false
}
