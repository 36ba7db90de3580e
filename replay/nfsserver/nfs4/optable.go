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

// op turns a method on the arguments of an operation into opInfo.do. part is whose method it is.
func op[P, T any](part func(*compound) *P, f func(p *P, a *T) status) func(*compound, xdr.Message) status {
	return func(x *compound, m xdr.Message) status {
		a, ok := m.(any).(*T)
		if !ok {
			return nfs4.NFS4ERR_SERVERFAULT
		}
		return f(part(x), a)
	}
}

func void[P any](part func(*compound) *P, f func(p *P) status) func(*compound, xdr.Message) status {
	return func(x *compound, _ xdr.Message) status { return f(part(x)) }
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
	objs := func(x *compound) *objects { return &x.objects }
	attrs := func(x *compound) *attrOps { return &x.attrs }
	dirs := func(x *compound) *dirOps { return &x.dirs }
	data := func(x *compound) *dataOps { return &x.data }
	xattrs := func(x *compound) *xattrOps { return &x.xattrs }
	opens := func(x *compound) *openOps { return &x.opens }
	locks := func(x *compound) *lockOps { return &x.locks }
	clients := func(x *compound) *clientOps { return &x.clients }
	notsupp := refuse(nfs4.NFS4ERR_NOTSUPP)
	for number, info := range map[nfs4.NfsOpnum4]opInfo{
		nfs4.OP_ACCESS:               {do: op(attrs, (*attrOps).access), fh: true},
		nfs4.OP_CLOSE:                {do: op(opens, (*openOps).closeOp), fh: true, reserve: changes},
		nfs4.OP_COMMIT:               {do: op(data, (*dataOps).commit), fh: true},
		nfs4.OP_CREATE:               {do: op(dirs, (*dirOps).create), fh: true, reserve: changes},
		nfs4.OP_DELEGPURGE:           {do: notsupp},
		nfs4.OP_DELEGRETURN:          {do: op(opens, (*openOps).delegreturn), fh: true, reserve: 4},
		nfs4.OP_GETATTR:              {do: op(attrs, (*attrOps).getattr), fh: true},
		nfs4.OP_GETFH:                {do: void(objs, (*objects).getfh), fh: true},
		nfs4.OP_LINK:                 {do: op(dirs, (*dirOps).link), fh: true, saved: true, reserve: changes},
		nfs4.OP_LOCK:                 {do: op(locks, (*lockOps).lock), fh: true, reserve: denies},
		nfs4.OP_LOCKT:                {do: op(locks, (*lockOps).lockt), fh: true},
		nfs4.OP_LOCKU:                {do: op(locks, (*lockOps).locku), fh: true, reserve: changes},
		nfs4.OP_LOOKUP:               {do: op(objs, (*objects).lookup), fh: true},
		nfs4.OP_LOOKUPP:              {do: void(objs, (*objects).lookupp), fh: true},
		nfs4.OP_NVERIFY:              {do: op(attrs, (*attrOps).nverify), fh: true},
		nfs4.OP_OPEN:                 {do: op(opens, (*openOps).open), fh: true, reserve: 3 * changes},
		nfs4.OP_OPENATTR:             {do: notsupp, fh: true},
		nfs4.OP_OPEN_CONFIRM:         {do: op(opens, (*openOps).openConfirm), only0: true, fh: true, reserve: changes},
		nfs4.OP_OPEN_DOWNGRADE:       {do: op(opens, (*openOps).openDowngrade), fh: true, reserve: changes},
		nfs4.OP_PUTFH:                {do: op(objs, (*objects).putfh)},
		nfs4.OP_PUTPUBFH:             {do: void(objs, (*objects).putrootfh)},
		nfs4.OP_PUTROOTFH:            {do: void(objs, (*objects).putrootfh)},
		nfs4.OP_READ:                 {do: op(data, (*dataOps).read), fh: true},
		nfs4.OP_READDIR:              {do: op(dirs, (*dirOps).readdir), fh: true},
		nfs4.OP_READLINK:             {do: void(dirs, (*dirOps).readlink), fh: true},
		nfs4.OP_REMOVE:               {do: op(dirs, (*dirOps).remove), fh: true, reserve: changes},
		nfs4.OP_RENAME:               {do: op(dirs, (*dirOps).rename), fh: true, saved: true, reserve: changes},
		nfs4.OP_RENEW:                {do: op(clients, (*clientOps).renew), only0: true},
		nfs4.OP_RESTOREFH:            {do: void(objs, (*objects).restorefh), saved: true},
		nfs4.OP_SAVEFH:               {do: void(objs, (*objects).savefh), fh: true},
		nfs4.OP_SECINFO:              {do: op(dirs, (*dirOps).secinfo), fh: true},
		nfs4.OP_SETATTR:              {do: op(attrs, (*attrOps).setattr), fh: true, reserve: changes},
		nfs4.OP_SETCLIENTID:          {do: op(clients, (*clientOps).setclientid), only0: true, reserve: changes},
		nfs4.OP_SETCLIENTID_CONFIRM:  {do: op(clients, (*clientOps).setclientidConfirm), only0: true, reserve: 4},
		nfs4.OP_VERIFY:               {do: op(attrs, (*attrOps).verify), fh: true},
		nfs4.OP_WRITE:                {do: op(data, (*dataOps).write), fh: true, reserve: changes},
		nfs4.OP_RELEASE_LOCKOWNER:    {do: op(locks, (*lockOps).releaseLockowner), only0: true, reserve: 4},
		nfs4.OP_BACKCHANNEL_CTL:      {do: op(clients, (*clientOps).backchannelCtl), first: 1},
		nfs4.OP_BIND_CONN_TO_SESSION: {do: op(clients, (*clientOps).bindConn), first: 1},
		nfs4.OP_EXCHANGE_ID:          {do: op(clients, (*clientOps).exchangeID), first: 1, reserve: 4 * changes},
		nfs4.OP_CREATE_SESSION:       {do: op(clients, (*clientOps).createSession), first: 1, reserve: 4 * changes},
		nfs4.OP_DESTROY_SESSION:      {do: op(clients, (*clientOps).destroySession), first: 1, reserve: 4},
		nfs4.OP_FREE_STATEID:         {do: op(clients, (*clientOps).freeStateid), first: 1, reserve: 4},
		nfs4.OP_GET_DIR_DELEGATION:   {do: op(dirs, (*dirOps).getDirDelegation), first: 1, fh: true, reserve: changes},
		nfs4.OP_GETDEVICEINFO:        {do: notsupp, first: 1},
		nfs4.OP_GETDEVICELIST:        {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTCOMMIT:         {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTGET:            {do: notsupp, first: 1, fh: true},
		nfs4.OP_LAYOUTRETURN:         {do: notsupp, first: 1},
		nfs4.OP_SECINFO_NO_NAME:      {do: op(dirs, (*dirOps).secinfoNoName), first: 1, fh: true},
		nfs4.OP_SEQUENCE:             {first: 1},
		nfs4.OP_SET_SSV:              {do: refuse(nfs4.NFS4ERR_INVAL), first: 1}, // no client has SP4_SSV
		nfs4.OP_TEST_STATEID:         {do: op(clients, (*clientOps).testStateid), first: 1},
		nfs4.OP_WANT_DELEGATION:      {do: notsupp, first: 1, fh: true},
		nfs4.OP_DESTROY_CLIENTID:     {do: op(clients, (*clientOps).destroyClientID), first: 1, reserve: 4},
		nfs4.OP_RECLAIM_COMPLETE:     {do: op(clients, (*clientOps).reclaimComplete), first: 1, reserve: 4},
		nfs4.OP_ALLOCATE:             {do: op(data, (*dataOps).allocate), first: 2, fh: true, reserve: 4},
		nfs4.OP_COPY:                 {do: op(data, (*dataOps).copyOp), first: 2, fh: true, saved: true, reserve: changes},
		nfs4.OP_COPY_NOTIFY:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_DEALLOCATE:           {do: op(data, (*dataOps).deallocate), first: 2, fh: true, reserve: 4},
		nfs4.OP_IO_ADVISE:            {do: op(data, (*dataOps).ioAdvise), first: 2, fh: true},
		nfs4.OP_LAYOUTERROR:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_LAYOUTSTATS:          {do: notsupp, first: 2, fh: true},
		nfs4.OP_OFFLOAD_CANCEL:       {do: refuse(nfs4.NFS4ERR_BAD_STATEID), first: 2, fh: true}, // every COPY ends with its call
		nfs4.OP_OFFLOAD_STATUS:       {do: refuse(nfs4.NFS4ERR_BAD_STATEID), first: 2, fh: true},
		nfs4.OP_READ_PLUS:            {do: op(data, (*dataOps).readPlus), first: 2, fh: true},
		nfs4.OP_SEEK:                 {do: op(data, (*dataOps).seek), first: 2, fh: true},
		nfs4.OP_WRITE_SAME:           {do: notsupp, first: 2, fh: true},
		nfs4.OP_CLONE:                {do: op(data, (*dataOps).clone), first: 2, fh: true, saved: true, reserve: 4},
		nfs4.OP_GETXATTR:             {do: op(xattrs, (*xattrOps).getxattr), first: 2, fh: true},
		nfs4.OP_SETXATTR:             {do: op(xattrs, (*xattrOps).setxattr), first: 2, fh: true, reserve: changes},
		nfs4.OP_LISTXATTRS:           {do: op(xattrs, (*xattrOps).listxattrs), first: 2, fh: true},
		nfs4.OP_REMOVEXATTR:          {do: op(xattrs, (*xattrOps).removexattr), first: 2, fh: true, reserve: changes},
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
