package scrub

import (
	"bytes"
	"net/netip"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/adapter"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// event copies what is known of a kernel event: its numbers and the words that Linux has. Addresses are replaced, as those of packets. A line of
// text becomes a record.
func (s *Scrubber) event(p *capture.Packet, h *held) bool {
	e := &s.traced
	if !e.Decode(h.data) || e.Kind == ftrace.Other {
		return false
	}
	e.Peer, e.Local = s.endpoint(e.Peer), s.endpoint(e.Local)
	if !s.opt.KeepNames {
		e.Program, e.Procedure = s.words(e)
		e.ReadList = listed(e.ReadList, kernelWords)
	}
	s.copied = e.Append(s.copied[:0])
	if len(s.copied) > len(h.out) {
		return false
	}
	h.out = h.out[:copy(h.out, s.copied)]
	p.Length = uint32(len(h.out))
	return true
}

// endpoint replaces the address of a host, but not its port.
func (s *Scrubber) endpoint(a netip.AddrPort) netip.AddrPort {
	if !a.IsValid() || s.opt.KeepAddresses {
		return a
	}
	ip := a.Addr().Unmap().AsSlice()
	kind := placeIPv6
	if len(ip) == placeSizes[placeIPv4] {
		kind = placeIPv4
	}
	to := make([]byte, len(ip))
	s.addresses.replace(kind, to, ip)
	addr, _ := netip.AddrFromSlice(to)
	return netip.AddrPortFrom(addr, a.Port())
}

// words returns the program and the procedure of an event. A counter has its adapter and port, and its name, in their places.
func (s *Scrubber) words(e *ftrace.Event) (program, procedure []byte) {
	if e.Kind == ftrace.Counter {
		port := make([]byte, len(e.Program))
		s.names.replace(xdr.Path, port, e.Program)
		if i := bytes.LastIndexByte(e.Program, '/'); i >= 0 && digits(e.Program[i+1:]) {
			copy(port[i+1:], e.Program[i+1:])
		}
		if adapter.Meaning(string(e.Procedure)) == "" {
			return port, make([]byte, len(e.Procedure))
		}
		return port, e.Procedure
	}
	if _, _, ok := nfs.Find(ftrace.ProgramName(string(e.Program)), e.Version, string(e.Procedure)); ok {
		return e.Program, e.Procedure
	}
	return listed(e.Program, kernelWords), listed(e.Procedure, kernelWords)
}

// listed returns a text that is in a list, and zeros in place of any other.
func listed(text []byte, list map[string]bool) []byte {
	if len(text) == 0 || list[string(text)] {
		return text
	}
	return make([]byte, len(text))
}

// kernelWords are the words of Linux's events besides the procedures of nfs.Find: programs, transports, how arguments travel, types of headers
// (RFC 8166, section 4.2), the names of a COMPOUND in the client's statistics, and the operations of NFSv4 in a server.
var kernelWords = func() map[string]bool {
	m := map[string]bool{"read list": true, "*read list": true, "NFSv4 callback": true}
	for word := range strings.FieldsSeq(`
		nfs nfsd nfsv2 nfsv3 nfsv4 nfs4_cb nfs_cb nfsacl nfs_acl lockd nlm statd nsm mount rpcbind
		rdma tcp udp local tcp-bc rdma-bc inline pullup mapped
		RDMA_MSG RDMA_NOMSG RDMA_MSGP RDMA_DONE RDMA_ERROR
		NULL COMPOUND FSINFO OPEN_NOATTR LOOKUP_ROOT STATFS PATHCONF SERVER_CAPS FS_LOCATIONS FSID_PRESENT GET_LEASE_TIME SYMLINK
		GETACL SETACL ZERO_RANGE LISTXATTRS CB_NULL CB_COMPOUND
	`) {
		m[word] = true
	}
	for n := range uint32(nfs4.OP_REMOVEXATTR + 1) {
		name := nfs4.OpName(n)
		m[name], m["OP_"+name] = true, true
	}
	return m
}()
