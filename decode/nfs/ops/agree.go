package ops

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Disagreement says how results contradict their arguments, or themselves; it is empty if they do not.
func Disagreement(args, result xdr.Message) string {
	switch r := result.(type) {
	case *nfs2.Readres:
		if a, ok := args.(*nfs2.Readargs); ok && r.Status == nfs2.NFS_OK {
			return tooMuch("read", uint64(r.Reply.Data.Length), uint64(a.Count))
		}
	case *nfs3.READ3res:
		a, ok := args.(*nfs3.READ3args)
		switch {
		case !ok || r.Status != nfs3.NFS3_OK:
		case uint64(r.Resok.Count) != uint64(r.Resok.Data.Length):
			return fmt.Sprintf("count of %d with %d bytes of data", r.Resok.Count, r.Resok.Data.Length)
		default:
			return tooMuch("read", uint64(r.Resok.Count), uint64(a.Count))
		}
	case *nfs3.WRITE3res:
		if a, ok := args.(*nfs3.WRITE3args); ok && r.Status == nfs3.NFS3_OK {
			if why := tooMuch("written", uint64(r.Resok.Count), uint64(a.Count)); why != "" {
				return why
			}
			return tooLoose(r.Resok.Committed, a.Stable)
		}
	case *nfs4.READ4res:
		if a, ok := args.(*nfs4.READ4args); ok && r.Status == nfs4.NFS4_OK {
			return tooMuch("read", uint64(r.Resok4.Data.Length), uint64(a.Count))
		}
	case *nfs4.WRITE4res:
		if a, ok := args.(*nfs4.WRITE4args); ok && r.Status == nfs4.NFS4_OK {
			if why := tooMuch("written", uint64(r.Resok4.Count), uint64(a.Data.Length)); why != "" {
				return why
			}
			return tooLoose(nfs3.StableHow(r.Resok4.Committed), nfs3.StableHow(a.Stable))
		}
	case *nfs4.SEQUENCE4res:
		if a, ok := args.(*nfs4.SEQUENCE4args); ok && r.SrStatus == nfs4.NFS4_OK {
			x := &r.SrResok4
			return otherSlot(x.SrSessionid == a.SaSessionid, x.SrSlotid, a.SaSlotid, x.SrSequenceid, a.SaSequenceid)
		}
	case *nfs4.CB_SEQUENCE4res:
		if a, ok := args.(*nfs4.CB_SEQUENCE4args); ok && r.CsrStatus == nfs4.NFS4_OK {
			x := &r.CsrResok4
			return otherSlot(x.CsrSessionid == a.CsaSessionid, x.CsrSlotid, a.CsaSlotid, x.CsrSequenceid, a.CsaSequenceid)
		}
	}
	return ""
}

func tooMuch(verb string, count, asked uint64) string {
	if count <= asked {
		return ""
	}
	return fmt.Sprintf("%d bytes %s, %d more than the call has or asks for", count, verb, count-asked)
}

// tooLoose compares how stable the results say that written data is with what was asked for: it must not be less (RFC 1813, section 3.3.7; RFC
// 8881, section 18.32.3). The versions of NFS have the same values.
func tooLoose(committed, stable nfs3.StableHow) string {
	if committed >= stable && committed <= nfs3.FILE_SYNC {
		return ""
	}
	return fmt.Sprintf("committed is %v for stable %v", committed, stable)
}

// otherSlot compares what the results of SEQUENCE must repeat (RFC 8881, sections 18.46.3 and 20.9.3).
func otherSlot(session bool, slot, asked, sequence, sent uint32) string {
	switch {
	case !session:
		return "results of another session"
	case slot != asked:
		return fmt.Sprintf("results of slot %d for slot %d", slot, asked)
	case sequence != sent:
		return fmt.Sprintf("results of sequence number %d for %d", sequence, sent)
	}
	return ""
}
