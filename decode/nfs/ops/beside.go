package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/nfs/rpcbind"
)

// mounts are the procedures of MOUNT; the versions differ in how many they have.
// UMNT and UMNTALL strike clients from the server's list, by address: ours may be
// that of others.
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

// lockManager are the procedures of NLM up to the last. They belong to hosts, not
// to connections, and go with NSM and calls in the other direction; versions 1 to
// 4 have holes in their numbers, which are no procedures.
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

// monitor are the procedures of NSM: what hosts tell each other of restarts.
var monitor = table{
	nsm.SM_NULL:       {Class: Nothing},
	nsm.SM_STAT:       {Class: Never},
	nsm.SM_MON:        {Class: Never},
	nsm.SM_UNMON:      {Class: Never},
	nsm.SM_UNMON_ALL:  {Class: Never},
	nsm.SM_SIMU_CRASH: {Class: Never},
	nsm.SM_NOTIFY:     {Class: Never},
}

// portmap, rpcbind3 and rpcbind4 are the registry of a host's programs. CALLIT,
// BCAST and INDIRECT call any procedure of any program on the caller's behalf.
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
