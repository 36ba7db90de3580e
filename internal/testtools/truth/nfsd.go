package truth

import (
	"bufio"
	"io"
	"strings"
)

// Nfsd is what the server counted between the start and the end of the run.
type Nfsd struct {
	RPCs    uint64            `json:"rpcs"`            // all RPCs of NFS and NFSACL
	V3      map[string]uint64 `json:"v3,omitempty"`    // calls by NFSv3 procedure
	V4      map[string]uint64 `json:"v4,omitempty"`    // NULL and COMPOUND
	V4Ops   map[string]uint64 `json:"v4ops,omitempty"` // operations that were evaluated
	Read    uint64            `json:"read"`            // bytes returned by READ
	Written uint64            `json:"written"`
}

var nfs3Procedures = strings.Fields(`NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR
SYMLINK MKNOD REMOVE RMDIR RENAME LINK READDIR READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT`)

// nfs4Operations are the names of RFC 7530, 8881, 7862 and 8276 by operation
// number. Numbers 0 to 2 are not in use.
var nfs4Operations = strings.Fields(`- - - ACCESS CLOSE COMMIT CREATE DELEGPURGE DELEGRETURN GETATTR GETFH
LINK LOCK LOCKT LOCKU LOOKUP LOOKUPP NVERIFY OPEN OPENATTR OPEN_CONFIRM OPEN_DOWNGRADE PUTFH PUTPUBFH
PUTROOTFH READ READDIR READLINK REMOVE RENAME RENEW RESTOREFH SAVEFH SECINFO SETATTR SETCLIENTID
SETCLIENTID_CONFIRM VERIFY WRITE RELEASE_LOCKOWNER BACKCHANNEL_CTL BIND_CONN_TO_SESSION EXCHANGE_ID
CREATE_SESSION DESTROY_SESSION FREE_STATEID GET_DIR_DELEGATION GETDEVICEINFO GETDEVICELIST LAYOUTCOMMIT
LAYOUTGET LAYOUTRETURN SECINFO_NO_NAME SEQUENCE SET_SSV TEST_STATEID WANT_DELEGATION DESTROY_CLIENTID
RECLAIM_COMPLETE ALLOCATE COPY COPY_NOTIFY DEALLOCATE IO_ADVISE LAYOUTERROR LAYOUTSTATS OFFLOAD_CANCEL
OFFLOAD_STATUS READ_PLUS SEEK WRITE_SAME CLONE GETXATTR SETXATTR LISTXATTRS REMOVEXATTR`)

// parseNfsd reads /proc/net/rpc/nfsd. The word after a name counts the words
// that follow it.
func parseNfsd(r io.Reader) (*Nfsd, error) {
	n := new(Nfsd)
	found := false
	s := bufio.NewScanner(r)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) < 2 {
			continue
		}
		w := numbers(f[1:])
		switch f[0] {
		case "io":
			if len(w) > 1 {
				n.Read, n.Written = w[0], w[1]
			}
		case "rpc":
			n.RPCs, found = w[0], true
		case "proc3":
			n.V3 = named(nfs3Procedures, w[1:])
		case "proc4":
			n.V4 = named([]string{"NULL", "COMPOUND"}, w[1:])
		case "proc4ops":
			n.V4Ops = named(nfs4Operations, w[1:])
		}
	}
	if !found {
		return nil, s.Err()
	}
	return n, s.Err()
}

func named(names []string, counts []uint64) map[string]uint64 {
	m := make(map[string]uint64)
	for i, n := range counts {
		if n != 0 && i < len(names) {
			m[names[i]] = n
		}
	}
	return m
}

// since returns what was counted after before was read.
func (n *Nfsd) since(before *Nfsd) *Nfsd {
	if n == nil {
		return nil
	}
	d := *n
	if before == nil {
		return &d
	}
	d.RPCs -= before.RPCs
	d.Read -= before.Read
	d.Written -= before.Written
	for _, p := range []struct{ a, b map[string]uint64 }{{d.V3, before.V3}, {d.V4, before.V4}, {d.V4Ops, before.V4Ops}} {
		for k, v := range p.b {
			if p.a[k] -= v; p.a[k] == 0 {
				delete(p.a, k)
			}
		}
	}
	return &d
}
