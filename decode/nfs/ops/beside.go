package ops

import (
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// mounts has the procedures of MOUNT; later versions have more of them. UMNT and UMNTALL
// remove clients from the server's list by address, and others may share our address.
var mounts = table{
	mount.MOUNTPROC_NULL:      {Class: Nothing},
	mount.MOUNTPROC_MNT:       {Class: Nothing},
	mount.MOUNTPROC_DUMP:      {Class: Nothing},
	mount.MOUNTPROC_UMNT:      {Class: Never},
	mount.MOUNTPROC_UMNTALL:   {Class: Never},
	mount.MOUNTPROC_EXPORT:    {Class: Nothing},
	mount.MOUNTPROC_EXPORTALL: {Class: Nothing},
	mount.MOUNTPROC2_PATHCONF: {Class: Nothing},
}

// lockManager returns the procedures of NLM up to the last. Versions 1 to 4 do not use all
// numbers. The asynchronous forms are answered by calls to the lock manager of our host, and
// GRANTED is a call to a client. FREE_ALL ends the locks of a host, which we may share with
// others.
func lockManager(version, last uint32) table {
	t := make(table, last+1)
	for n := uint32(1); n <= last; n++ {
		if n <= nlm.NLM_NSM_NOTIFY || n >= nlm.NLM3_SHARE {
			t[n].Class = Never
		}
	}
	for n, e := range map[uint32]Entry{
		nlm.NLM_NULL:     {Class: Nothing},
		nlm.NLM_TEST:     {Class: Nothing},
		nlm.NLM_LOCK:     {Class: Holds, State: true},
		nlm.NLM_CANCEL:   {Class: Holds, State: true},
		nlm.NLM_UNLOCK:   {Class: Holds, State: true},
		nlm.NLM3_SHARE:   {Class: Holds, State: true},
		nlm.NLM3_UNSHARE: {Class: Holds, State: true},
		nlm.NLM3_NM_LOCK: {Class: Holds, State: true},
	} {
		if n > last {
			continue
		}
		if n != nlm.NLM_NULL {
			e.act = lock3
			if version == nlm.NLM4_VERS {
				e.act = lock4
			}
		}
		t[n] = e
	}
	return t
}

// lock3 is the act of calls of NLM 1 and 3, lock4 that of NLM 4. A length of 0 reaches to the
// end.
func lock3(m xdr.Message, a *Act) {
	on := func(l *nlm.NlmLock) { locks(l.Fh, uint64(l.LOffset), uint64(l.LLen), a) }
	switch m := m.(type) {
	case *nlm.NlmTestargs:
		on(&m.Alock)
	case *nlm.NlmLockargs:
		on(&m.Alock)
	case *nlm.NlmCancargs:
		on(&m.Alock)
	case *nlm.NlmUnlockargs:
		on(&m.Alock)
	case *nlm.NlmShareargs:
		a.object(m.Share.Fh)
	default:
		a.Class = Never
	}
}

func lock4(m xdr.Message, a *Act) {
	on := func(l *nlm.Nlm4Lock) { locks(l.Fh, l.LOffset, l.LLen, a) }
	switch m := m.(type) {
	case *nlm.Nlm4Testargs:
		on(&m.Alock)
	case *nlm.Nlm4Lockargs:
		on(&m.Alock)
	case *nlm.Nlm4Cancargs:
		on(&m.Alock)
	case *nlm.Nlm4Unlockargs:
		on(&m.Alock)
	case *nlm.Nlm4Shareargs:
		a.object(m.Share.Fh)
	default:
		a.Class = Never
	}
}

func locks(handle []byte, offset, length uint64, a *Act) {
	if length == 0 {
		length = math.MaxUint64
	}
	a.object(handle)
	a.span(offset, length)
}

// monitor has the procedures of NSM, by which hosts announce restarts.
var monitor = table{
	nsm.SM_NULL:       {Class: Nothing},
	nsm.SM_STAT:       {Class: Never},
	nsm.SM_MON:        {Class: Never},
	nsm.SM_UNMON:      {Class: Never},
	nsm.SM_UNMON_ALL:  {Class: Never},
	nsm.SM_SIMU_CRASH: {Class: Never},
	nsm.SM_NOTIFY:     {Class: Never},
}

// portmap, rpcbind3 and rpcbind4 have the procedures of the registry of a host's
// programs. CALLIT, BCAST and INDIRECT call any procedure of any program for the caller.
var portmap = table{
	rpcbind.PMAPPROC_NULL:    {Class: Nothing},
	rpcbind.PMAPPROC_SET:     {Class: Never},
	rpcbind.PMAPPROC_UNSET:   {Class: Never},
	rpcbind.PMAPPROC_GETPORT: {Class: Nothing},
	rpcbind.PMAPPROC_DUMP:    {Class: Nothing},
	rpcbind.PMAPPROC_CALLIT:  {Class: Never},
}

var rpcbind3 = table{
	rpcbind.RPCBPROC_NULL:        {Class: Nothing},
	rpcbind.RPCBPROC_SET:         {Class: Never},
	rpcbind.RPCBPROC_UNSET:       {Class: Never},
	rpcbind.RPCBPROC_GETADDR:     {Class: Nothing},
	rpcbind.RPCBPROC_DUMP:        {Class: Nothing},
	rpcbind.RPCBPROC_CALLIT:      {Class: Never},
	rpcbind.RPCBPROC_GETTIME:     {Class: Nothing},
	rpcbind.RPCBPROC_UADDR2TADDR: {Class: Nothing},
	rpcbind.RPCBPROC_TADDR2UADDR: {Class: Nothing},
}

var rpcbind4 = table{
	rpcbind.RPCBPROC4_NULL:        {Class: Nothing},
	rpcbind.RPCBPROC4_SET:         {Class: Never},
	rpcbind.RPCBPROC4_UNSET:       {Class: Never},
	rpcbind.RPCBPROC4_GETADDR:     {Class: Nothing},
	rpcbind.RPCBPROC4_DUMP:        {Class: Nothing},
	rpcbind.RPCBPROC4_BCAST:       {Class: Never},
	rpcbind.RPCBPROC4_GETTIME:     {Class: Nothing},
	rpcbind.RPCBPROC4_UADDR2TADDR: {Class: Nothing},
	rpcbind.RPCBPROC4_TADDR2UADDR: {Class: Nothing},
	rpcbind.RPCBPROC4_GETVERSADDR: {Class: Nothing},
	rpcbind.RPCBPROC4_INDIRECT:    {Class: Never},
	rpcbind.RPCBPROC4_GETADDRLIST: {Class: Nothing},
	rpcbind.RPCBPROC4_GETSTAT:     {Class: Nothing},
}
