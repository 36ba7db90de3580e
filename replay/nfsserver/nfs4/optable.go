package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// opInfo describes how an operation is executed.
type opInfo struct {
	do        func(x *compound, args xdr.Message) status
	first     uint32 // first minor version that has it
	only0     bool   // NFS4ERR_NOTSUPP since NFSv4.1
	fh, saved bool   // needs the current, the saved filehandle
	// reserve is the largest result in bytes of an operation that changes something: the
	// operation is not executed if the result would not fit. Others are executed, and the
	// result is dropped.
	reserve int
}

// op turns a method on the arguments of an operation into opInfo.do.
func op[T any](f func(x *compound, a *T) status) func(*compound, xdr.Message) status {
	return func(x *compound, m xdr.Message) status {
		a, ok := m.(any).(*T)
		if !ok {
			return nfs4.NFS4ERR_SERVERFAULT
		}
		return f(x, a)
	}
}

func void(f func(x *compound) status) func(*compound, xdr.Message) status {
	return func(x *compound, _ xdr.Message) status { return f(x) }
}

func refuse(st status) func(*compound, xdr.Message) status {
	return func(*compound, xdr.Message) status { return st }
}

const (
	changes = 64                          // bytes of a result with change_info4 and a bitmap
	denies  = 32 + nfs4.NFS4_OPAQUE_LIMIT // of LOCK4denied
)

var opTable [nfs4.OP_REMOVEXATTR + 1]opInfo

func init() {
	notsupp := refuse(nfs4.NFS4ERR_NOTSUPP)
	for number, info := range map[nfs4.NfsOpnum4]opInfo{
		nfs4.OP_ACCESS:               {do: op((*compound).access), fh: true},
		nfs4.OP_CLOSE:                {do: op((*compound).closeOp), fh: true, reserve: changes},
		nfs4.OP_COMMIT:               {do: op((*compound).commit), fh: true},
		nfs4.OP_CREATE:               {do: op((*compound).create), fh: true, reserve: changes},
		nfs4.OP_DELEGPURGE:           {do: notsupp},
		nfs4.OP_DELEGRETURN:          {do: op((*compound).delegreturn), fh: true, reserve: 4},
		nfs4.OP_GETATTR:              {do: op((*compound).getattr), fh: true},
		nfs4.OP_GETFH:                {do: void((*compound).getfh), fh: true},
		nfs4.OP_LINK:                 {do: op((*compound).link), fh: true, saved: true, reserve: changes},
		nfs4.OP_LOCK:                 {do: op((*compound).lock), fh: true, reserve: denies},
		nfs4.OP_LOCKT:                {do: op((*compound).lockt), fh: true},
		nfs4.OP_LOCKU:                {do: op((*compound).locku), fh: true, reserve: changes},
		nfs4.OP_LOOKUP:               {do: op((*compound).lookup), fh: true},
		nfs4.OP_LOOKUPP:              {do: void((*compound).lookupp), fh: true},
		nfs4.OP_NVERIFY:              {do: op((*compound).nverify), fh: true},
		nfs4.OP_OPEN:                 {do: op((*compound).open), fh: true, reserve: 3 * changes},
		nfs4.OP_OPENATTR:             {do: notsupp, fh: true},
		nfs4.OP_OPEN_CONFIRM:         {do: op((*compound).openConfirm), only0: true, fh: true, reserve: changes},
		nfs4.OP_OPEN_DOWNGRADE:       {do: op((*compound).openDowngrade), fh: true, reserve: changes},
		nfs4.OP_PUTFH:                {do: op((*compound).putfh)},
		nfs4.OP_PUTPUBFH:             {do: void((*compound).putrootfh)},
		nfs4.OP_PUTROOTFH:            {do: void((*compound).putrootfh)},
		nfs4.OP_READ:                 {do: op((*compound).read), fh: true},
		nfs4.OP_READDIR:              {do: op((*compound).readdir), fh: true},
		nfs4.OP_READLINK:             {do: void((*compound).readlink), fh: true},
		nfs4.OP_REMOVE:               {do: op((*compound).remove), fh: true, reserve: changes},
		nfs4.OP_RENAME:               {do: op((*compound).rename), fh: true, saved: true, reserve: changes},
		nfs4.OP_RENEW:                {do: op((*compound).renew), only0: true},
		nfs4.OP_RESTOREFH:            {do: void((*compound).restorefh), saved: true},
		nfs4.OP_SAVEFH:               {do: void((*compound).savefh), fh: true},
		nfs4.OP_SECINFO:              {do: op((*compound).secinfo), fh: true},
		nfs4.OP_SETATTR:              {do: op((*compound).setattr), fh: true, reserve: changes},
		nfs4.OP_SETCLIENTID:          {do: op((*compound).setclientid), only0: true, reserve: changes},
		nfs4.OP_SETCLIENTID_CONFIRM:  {do: op((*compound).setclientidConfirm), only0: true, reserve: 4},
		nfs4.OP_VERIFY:               {do: op((*compound).verify), fh: true},
		nfs4.OP_WRITE:                {do: op((*compound).write), fh: true, reserve: changes},
		nfs4.OP_RELEASE_LOCKOWNER:    {do: op((*compound).releaseLockowner), only0: true, reserve: 4},
		nfs4.OP_BACKCHANNEL_CTL:      {do: op((*compound).backchannelCtl), first: 1},
		nfs4.OP_BIND_CONN_TO_SESSION: {do: op((*compound).bindConn), first: 1},
		nfs4.OP_EXCHANGE_ID:          {do: op((*compound).exchangeID), first: 1, reserve: 4 * changes},
		nfs4.OP_CREATE_SESSION:       {do: op((*compound).createSession), first: 1, reserve: 4 * changes},
		nfs4.OP_DESTROY_SESSION:      {do: op((*compound).destroySession), first: 1, reserve: 4},
		nfs4.OP_FREE_STATEID:         {do: op((*compound).freeStateid), first: 1, reserve: 4},
		nfs4.OP_GET_DIR_DELEGATION:   {do: notsupp, first: 1, fh: true},
		nfs4.OP_GETDEVICEINFO:        {do: notsupp, first: 1},
		nfs4.OP_GETDEVICELIST:        {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTCOMMIT:         {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTGET:            {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTRETURN:         {do: notsupp, first: 1},
		nfs4.OP_SECINFO_NO_NAME:      {do: op((*compound).secinfoNoName), first: 1, fh: true},
		nfs4.OP_SEQUENCE:             {first: 1},
		nfs4.OP_SET_SSV:              {do: refuse(nfs4.NFS4ERR_INVAL), first: 1}, // no client has SP4_SSV
		nfs4.OP_TEST_STATEID:         {do: op((*compound).testStateid), first: 1},
		nfs4.OP_WANT_DELEGATION:      {do: notsupp, first: 1, fh: true},
		nfs4.OP_DESTROY_CLIENTID:     {do: op((*compound).destroyClientID), first: 1, reserve: 4},
		nfs4.OP_RECLAIM_COMPLETE:     {do: op((*compound).reclaimComplete), first: 1, reserve: 4},
		nfs4.OP_ALLOCATE:             {do: op((*compound).allocate), first: 2, fh: true, reserve: 4},
		nfs4.OP_COPY:                 {do: op((*compound).copyOp), first: 2, fh: true, saved: true, reserve: changes},
		nfs4.OP_COPY_NOTIFY:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_DEALLOCATE:           {do: op((*compound).deallocate), first: 2, fh: true, reserve: 4},
		nfs4.OP_IO_ADVISE:            {do: op((*compound).ioAdvise), first: 2, fh: true},
		nfs4.OP_LAYOUTERROR:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_LAYOUTSTATS:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_OFFLOAD_CANCEL:       {do: refuse(nfs4.NFS4ERR_BAD_STATEID), first: 2, fh: true}, // every COPY ends with its call
		nfs4.OP_OFFLOAD_STATUS:       {do: refuse(nfs4.NFS4ERR_BAD_STATEID), first: 2, fh: true},
		nfs4.OP_READ_PLUS:            {do: op((*compound).readPlus), first: 2, fh: true},
		nfs4.OP_SEEK:                 {do: op((*compound).seek), first: 2, fh: true},
		nfs4.OP_WRITE_SAME:           {do: notsupp, first: 2, fh: true},
		nfs4.OP_CLONE:                {do: op((*compound).clone), first: 2, fh: true, saved: true, reserve: 4},
		nfs4.OP_GETXATTR:             {do: op((*compound).getxattr), first: 2, fh: true},
		nfs4.OP_SETXATTR:             {do: op((*compound).setxattr), first: 2, fh: true, reserve: changes},
		nfs4.OP_LISTXATTRS:           {do: op((*compound).listxattrs), first: 2, fh: true},
		nfs4.OP_REMOVEXATTR:          {do: op((*compound).removexattr), first: 2, fh: true, reserve: changes},
	} {
		opTable[number] = info
	}
}

var gone = opInfo{do: refuse(nfs4.NFS4ERR_NOTSUPP)}

// lookupOp finds an operation of a minor version, nil if it has none of that
// number.
func lookupOp(number, minor uint32) *opInfo {
	if uint64(number) >= uint64(len(opTable)) {
		return nil
	}
	info := &opTable[number]
	switch {
	case info.do == nil && number != uint32(nfs4.OP_SEQUENCE), minor < info.first:
		return nil
	case info.only0 && minor > 0:
		return &gone
	}
	return info
}
