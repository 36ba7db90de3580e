package ops

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// current is an operation on the current file handle.
func current(_ xdr.Message, a *Act) { a.add(Place{File: Current}) }

// both is one on two objects.
func both(_ xdr.Message, a *Act) {
	a.add(Place{File: Saved})
	a.add(Place{File: Current})
}

// operations are those of NFSv4.0 (RFC 7530), 4.1 (RFC 8881), 4.2 (RFC 7862) and of
// extended attributes (RFC 8276).
var operations = table{
	nfs4.OP_ACCESS:      {Class: Nothing},
	nfs4.OP_CLOSE:       {Class: Nothing},
	nfs4.OP_COMMIT:      {Class: Nothing},
	nfs4.OP_CREATE:      {Class: Changes, Effect: Descends, act: of(func(m *nfs4.CREATE4args, a *Act) { a.named(Current, m.Objname) })},
	nfs4.OP_DELEGPURGE:  {Class: Nothing},
	nfs4.OP_DELEGRETURN: {Class: Nothing},
	nfs4.OP_GETATTR:     {Class: Nothing},
	nfs4.OP_GETFH:       {Class: Nothing},
	nfs4.OP_LINK: {Class: Changes, act: of(func(m *nfs4.LINK4args, a *Act) {
		a.add(Place{File: Saved})
		a.named(Current, m.Newname)
	})},
	nfs4.OP_LOCK:           {Class: Holds, act: current},
	nfs4.OP_LOCKT:          {Class: Nothing},
	nfs4.OP_LOCKU:          {Class: Nothing},
	nfs4.OP_LOOKUP:         {Class: Nothing, Effect: Descends, act: of(func(m *nfs4.LOOKUP4args, a *Act) { a.named(Current, m.Objname) })},
	nfs4.OP_LOOKUPP:        {Class: Nothing, Effect: Ascends},
	nfs4.OP_NVERIFY:        {Class: Nothing},
	nfs4.OP_OPEN:           {Class: Changes, Effect: Descends, act: of(open)},
	nfs4.OP_OPENATTR:       {Class: Changes, Effect: EntersAttributes, act: of(openattr)},
	nfs4.OP_OPEN_CONFIRM:   {Class: Nothing},
	nfs4.OP_OPEN_DOWNGRADE: {Class: Nothing},
	nfs4.OP_PUTFH:          {Class: Nothing, Effect: Puts},
	nfs4.OP_PUTPUBFH:       {Class: Nothing, Effect: PutsPublic},
	nfs4.OP_PUTROOTFH:      {Class: Nothing, Effect: PutsRoot},
	nfs4.OP_READ:           {Class: Nothing},
	nfs4.OP_READDIR:        {Class: Nothing},
	nfs4.OP_READLINK:       {Class: Nothing},
	nfs4.OP_REMOVE:         {Class: Changes, act: of(func(m *nfs4.REMOVE4args, a *Act) { a.named(Current, m.Target) })},
	nfs4.OP_RENAME: {Class: Changes, act: of(func(m *nfs4.RENAME4args, a *Act) {
		a.named(Saved, m.Oldname)
		a.named(Current, m.Newname)
	})},
	nfs4.OP_RENEW:               {Class: Nothing},
	nfs4.OP_RESTOREFH:           {Class: Nothing, Effect: Restores},
	nfs4.OP_SAVEFH:              {Class: Nothing, Effect: Saves},
	nfs4.OP_SECINFO:             {Class: Nothing, Effect: Consumes},
	nfs4.OP_SETATTR:             {Class: Changes, act: current},
	nfs4.OP_SETCLIENTID:         {Class: Nothing},
	nfs4.OP_SETCLIENTID_CONFIRM: {Class: Nothing},
	nfs4.OP_VERIFY:              {Class: Nothing},
	nfs4.OP_WRITE:               {Class: Changes, act: current},
	nfs4.OP_RELEASE_LOCKOWNER:   {Class: Nothing},

	nfs4.OP_BACKCHANNEL_CTL:      {Class: Nothing, Minor: 1},
	nfs4.OP_BIND_CONN_TO_SESSION: {Class: Nothing, Minor: 1},
	nfs4.OP_EXCHANGE_ID:          {Class: Nothing, Minor: 1},
	nfs4.OP_CREATE_SESSION:       {Class: Nothing, Minor: 1},
	nfs4.OP_DESTROY_SESSION:      {Class: Nothing, Minor: 1},
	nfs4.OP_FREE_STATEID:         {Class: Nothing, Minor: 1},
	nfs4.OP_GET_DIR_DELEGATION:   {Class: Holds, Minor: 1, act: current},
	nfs4.OP_GETDEVICEINFO:        {Class: Nothing, Minor: 1},
	nfs4.OP_GETDEVICELIST:        {Class: Nothing, Minor: 1},
	nfs4.OP_LAYOUTCOMMIT:         {Class: Changes, Minor: 1, act: current},
	nfs4.OP_LAYOUTGET:            {Class: Changes, Minor: 1, act: of(layoutget)},
	nfs4.OP_LAYOUTRETURN:         {Class: Holds, Minor: 1, act: current}, // it can report errors of devices
	nfs4.OP_SECINFO_NO_NAME:      {Class: Nothing, Minor: 1, Effect: Consumes},
	nfs4.OP_SEQUENCE:             {Class: Nothing, Minor: 1},
	nfs4.OP_SET_SSV:              {Class: Never, Minor: 1}, // of a protection that the codecs do not look into
	nfs4.OP_TEST_STATEID:         {Class: Nothing, Minor: 1},
	nfs4.OP_WANT_DELEGATION:      {Class: Holds, Minor: 1, act: current},
	nfs4.OP_DESTROY_CLIENTID:     {Class: Nothing, Minor: 1},
	nfs4.OP_RECLAIM_COMPLETE:     {Class: Nothing, Minor: 1},

	nfs4.OP_ALLOCATE: {Class: Changes, Minor: 2, act: current},
	nfs4.OP_COPY:     {Class: Changes, Minor: 2, act: of(copyFile)},
	// It lets another server read the file, without asking us again.
	nfs4.OP_COPY_NOTIFY:    {Class: Never, Minor: 2},
	nfs4.OP_DEALLOCATE:     {Class: Changes, Minor: 2, act: current},
	nfs4.OP_IO_ADVISE:      {Class: Holds, Minor: 2, act: current},
	nfs4.OP_LAYOUTERROR:    {Class: Holds, Minor: 2, act: current}, // a server may fence a device for it
	nfs4.OP_LAYOUTSTATS:    {Class: Holds, Minor: 2, act: current},
	nfs4.OP_OFFLOAD_CANCEL: {Class: Changes, Minor: 2, act: current},
	nfs4.OP_OFFLOAD_STATUS: {Class: Nothing, Minor: 2},
	nfs4.OP_READ_PLUS:      {Class: Nothing, Minor: 2},
	nfs4.OP_SEEK:           {Class: Nothing, Minor: 2},
	nfs4.OP_WRITE_SAME:     {Class: Changes, Minor: 2, act: current},
	nfs4.OP_CLONE:          {Class: Changes, Minor: 2, act: both},

	nfs4.OP_GETXATTR:    {Class: Nothing, Minor: 2},
	nfs4.OP_SETXATTR:    {Class: Changes, Minor: 2, act: current},
	nfs4.OP_LISTXATTRS:  {Class: Nothing, Minor: 2},
	nfs4.OP_REMOVEXATTR: {Class: Changes, Minor: 2, act: current},
}

// callbacks are the operations of a server that calls its client.
var callbacks = table{
	nfs4.OP_CB_GETATTR:              {Class: Never},
	nfs4.OP_CB_RECALL:               {Class: Never},
	nfs4.OP_CB_LAYOUTRECALL:         {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY:               {Class: Never, Minor: 1},
	nfs4.OP_CB_PUSH_DELEG:           {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALL_ANY:           {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALLABLE_OBJ_AVAIL: {Class: Never, Minor: 1},
	nfs4.OP_CB_RECALL_SLOT:          {Class: Never, Minor: 1},
	nfs4.OP_CB_SEQUENCE:             {Class: Never, Minor: 1},
	nfs4.OP_CB_WANTS_CANCELLED:      {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY_LOCK:          {Class: Never, Minor: 1},
	nfs4.OP_CB_NOTIFY_DEVICEID:      {Class: Never, Minor: 1},
	nfs4.OP_CB_OFFLOAD:              {Class: Never, Minor: 2},
}

// open: without CREATE nothing is changed, but share reservations and delegations
// stand in others' way.
func open(m *nfs4.OPEN4args, a *Act) {
	if m.Openhow.Opentype != nfs4.OPEN4_CREATE {
		a.Class = Holds
	}
	if name, ok := OpenName(m); ok {
		a.named(Current, name)
	} else {
		a.add(Place{File: Current})
	}
}

// OpenName is the name of the file that an OPEN opens in the current directory; ok
// is false if it opens the current file itself (RFC 8881, section 18.16).
func OpenName(m *nfs4.OPEN4args) (name []byte, ok bool) {
	switch m.Claim.Claim {
	case nfs4.CLAIM_NULL:
		return m.Claim.File, true
	case nfs4.CLAIM_DELEGATE_CUR:
		return m.Claim.DelegateCurInfo.File, true
	case nfs4.CLAIM_DELEGATE_PREV:
		return m.Claim.FileDelegatePrev, true
	}
	return nil, false
}

func openattr(m *nfs4.OPENATTR4args, a *Act) {
	if a.add(Place{File: Current}); !m.Createdir {
		a.Class = Nothing
	}
}

// layoutget: servers of block layouts allocate what is to be written.
func layoutget(m *nfs4.LAYOUTGET4args, a *Act) {
	if a.add(Place{File: Current}); m.LogaIomode == nfs4.LAYOUTIOMODE4_READ {
		a.Class = Holds
	}
}

// copyFile: from another server, this one would have to call it.
func copyFile(m *nfs4.COPY4args, a *Act) {
	if both(m, a); len(m.CaSourceServer) > 0 {
		a.Class = Never
	}
}
