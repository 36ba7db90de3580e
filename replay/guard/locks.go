package guard

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// foreignHost reports that a call of NLM is in the name of a host that is not this run's: it
// would take or end the locks of others. It is empty for other calls.
func (g *Guard) foreignHost(m xdr.Message) string {
	var name []byte
	switch m := m.(type) {
	case *nlm.NlmTestargs:
		name = m.Alock.CallerName
	case *nlm.NlmLockargs:
		name = m.Alock.CallerName
	case *nlm.NlmCancargs:
		name = m.Alock.CallerName
	case *nlm.NlmUnlockargs:
		name = m.Alock.CallerName
	case *nlm.NlmShareargs:
		name = m.Share.CallerName
	case *nlm.Nlm4Testargs:
		name = m.Alock.CallerName
	case *nlm.Nlm4Lockargs:
		name = m.Alock.CallerName
	case *nlm.Nlm4Cancargs:
		name = m.Alock.CallerName
	case *nlm.Nlm4Unlockargs:
		name = m.Alock.CallerName
	case *nlm.Nlm4Shareargs:
		name = m.Share.CallerName
	default:
		return ""
	}
	if len(g.opt.LockHost) == 0 || !bytes.HasPrefix(name, g.opt.LockHost) {
		return "host"
	}
	return ""
}
