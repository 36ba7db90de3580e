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

// event copies what is known of an event of a kernel: its numbers, those of its texts that kernels have, and addresses as those of packets
// are. A line of text becomes a record.
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

// words are the program and the procedure of an event: of a counter the adapter with its port, and the counter.
func (s *Scrubber) words(e *ftrace.Event) (program, procedure []byte) {
	if e.Kind == ftrace.Counter {
		port := make([]byte, len(e.Program))
		s.names.replace(xdr.Path, port, e.Program)
		if i := bytes.LastIndexByte(e.Program, '/'); digits(e.Program[i+1:]) {
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

// listed is a text that is in a list, else zeros.
func listed(text []byte, list map[string]bool) []byte {
	if len(text) == 0 || list[string(text)] {
		return text
	}
	return make([]byte, len(text))
}

// kernelWords are the words of Linux in events that are no names of procedures: programs, kinds of transports, how arguments travel, types of
// headers (RFC 8166, section 4.2), what the client's statistics call a COMPOUND, and operations of NFSv4 in a server.
var kernelWords = func() map[string]bool {
	m := map[string]bool{"read list": true, "*read list": true}
	for word := range strings.FieldsSeq(`
		nfs nfsd nfsv2 nfsv3 nfsv4 nfs4_cb nfs_cb nfsacl nfs_acl lockd nlm statd nsm mount rpcbind NFSv4 callback
		rdma tcp udp local tcp-bc rdma-bc inline pullup mapped
		RDMA_MSG RDMA_NOMSG RDMA_MSGP RDMA_DONE RDMA_ERROR
		NULL COMPOUND FSINFO OPEN_NOATTR LOOKUP_ROOT STATFS PATHCONF SERVER_CAPS FS_LOCATIONS FSID_PRESENT GET_LEASE_TIME SYMLINK
		GETACL SETACL ZERO_RANGE LISTXATTRS CB_NULL CB_COMPOUND
	`) {
		m[word] = true
	}
	for n := range uint32(nfs4.OP_REMOVEXATTR + 1) {
		if name := nfs4.OpName(n); name != "" {
			m[name], m["OP_"+name] = true, true
		}
	}
	return m
}()
