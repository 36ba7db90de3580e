package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
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

// lockManager returns the procedures of NLM up to the last. Locks of NLM belong to hosts,
// not to connections, and need NSM and calls in the other direction. Versions 1 to 4 do not
// use all numbers.
func lockManager(last uint32) table {
	t := make(table, last+1)
	t[nlm.NLM_NULL].Class = Nothing
	for n := uint32(1); n <= last; n++ {
		if n <= nlm.NLM_NSM_NOTIFY || n >= nlm.NLM3_SHARE {
			t[n].Class = Never
		}
	}
	return t
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
