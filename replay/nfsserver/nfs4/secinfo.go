package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// mechanism is the Kerberos mechanism, 1.2.840.113554.1.2.2 (RFC 1964, section 1).
var mechanism = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// secinfo lists the flavors, which are the same everywhere on this server.
func (x *dirOps) secinfo(a *nfs4.SECINFO4args) status {
	if st := x.name(a.Name); st != ok {
		return st
	}
	var at store.Attr
	if err := x.s.store.Lookup(&x.c.Cred, x.fh, a.Name, &at); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.appendFlavors()
	return ok
}

func (x *dirOps) secinfoNoName(a *nfs4.SECINFO_NO_NAME4args) status {
	switch a.Style {
	case nfs4.SECINFO_STYLE4_CURRENT_FH:
	case nfs4.SECINFO_STYLE4_PARENT:
		if x.fh == x.s.root {
			return nfs4.NFS4ERR_NOENT
		}
		if _, err := x.s.store.Parent(&x.c.Cred, x.fh); err != nil {
			return x.inDirectory(err, x.fh)
		}
	default:
		return nfs4.NFS4ERR_INVAL
	}
	x.appendFlavors()
	return ok
}

func (x *dirOps) appendFlavors() {
	flavors := x.c.Server().Flavors()
	b := xdr.AppendUint32(x.c.Out, uint32(len(flavors)))
	for _, f := range flavors {
		s := nfs4.Secinfo4{Flavor: nfs4.Secflavor4(f)}
		if f >= oncrpc.PseudoKrb5 && f <= oncrpc.PseudoKrbP {
			s.Flavor = nfs4.RPCSEC_GSS
			s.FlavorInfo = nfs4.RpcsecGssInfo{Oid: mechanism, Service: nfs4.RpcGssSvcT(f - oncrpc.PseudoKrb5 + 1)}
		}
		b = s.Append(b)
	}
	x.c.Out = b
	if x.minor > 0 || !x.c.Allowed() {
		x.hasFH = false // RFC 8881, section 2.6.3.1.1.8: it is used up
	}
}
