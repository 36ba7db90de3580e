package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// opInfo describes an operation: its name, and the XDR type names and
// constructors of its arguments and result.
type opInfo struct {
	name    string
	args    string
	newArgs func() xdr.Message
	res     string
	newRes  func() xdr.Message
}

// opTable holds operations by number. The number of the "illegal" operation is
// far away from the others, so it has slot 0, which no operation uses.
type opTable []opInfo

// slot is the index of an operation, -1 if the number is not defined.
func (t opTable) slot(op uint32) int {
	if op == uint32(OP_ILLEGAL) {
		return 0
	}
	if op == 0 || uint64(op) >= uint64(len(t)) || t[op].name == "" {
		return -1
	}
	return int(op)
}

// info returns the description of an operation, or nil.
func (t opTable) info(op uint32) *opInfo {
	if i := t.slot(op); i >= 0 {
		return &t[i]
	}
	return nil
}

func newMessage[T any, P interface {
	*T
	xdr.Message
}]() xdr.Message {
	return P(new(T))
}

// foreOps are the operations of NFSv4.0, 4.1, 4.2 and RFC 8276.
var foreOps = opTable{
	OP_ACCESS:               {"ACCESS", "ACCESS4args", newMessage[ACCESS4args], "ACCESS4res", newMessage[ACCESS4res]},
	OP_CLOSE:                {"CLOSE", "CLOSE4args", newMessage[CLOSE4args], "CLOSE4res", newMessage[CLOSE4res]},
	OP_COMMIT:               {"COMMIT", "COMMIT4args", newMessage[COMMIT4args], "COMMIT4res", newMessage[COMMIT4res]},
	OP_CREATE:               {"CREATE", "CREATE4args", newMessage[CREATE4args], "CREATE4res", newMessage[CREATE4res]},
	OP_DELEGPURGE:           {"DELEGPURGE", "DELEGPURGE4args", newMessage[DELEGPURGE4args], "DELEGPURGE4res", newMessage[Status4res]},
	OP_DELEGRETURN:          {"DELEGRETURN", "DELEGRETURN4args", newMessage[DELEGRETURN4args], "DELEGRETURN4res", newMessage[Status4res]},
	OP_GETATTR:              {"GETATTR", "GETATTR4args", newMessage[GETATTR4args], "GETATTR4res", newMessage[GETATTR4res]},
	OP_GETFH:                {"GETFH", "void", xdr.NewVoid, "GETFH4res", newMessage[GETFH4res]},
	OP_LINK:                 {"LINK", "LINK4args", newMessage[LINK4args], "LINK4res", newMessage[LINK4res]},
	OP_LOCK:                 {"LOCK", "LOCK4args", newMessage[LOCK4args], "LOCK4res", newMessage[LOCK4res]},
	OP_LOCKT:                {"LOCKT", "LOCKT4args", newMessage[LOCKT4args], "LOCKT4res", newMessage[LOCKT4res]},
	OP_LOCKU:                {"LOCKU", "LOCKU4args", newMessage[LOCKU4args], "LOCKU4res", newMessage[LOCKU4res]},
	OP_LOOKUP:               {"LOOKUP", "LOOKUP4args", newMessage[LOOKUP4args], "LOOKUP4res", newMessage[Status4res]},
	OP_LOOKUPP:              {"LOOKUPP", "void", xdr.NewVoid, "LOOKUPP4res", newMessage[Status4res]},
	OP_NVERIFY:              {"NVERIFY", "NVERIFY4args", newMessage[NVERIFY4args], "NVERIFY4res", newMessage[Status4res]},
	OP_OPEN:                 {"OPEN", "OPEN4args", newMessage[OPEN4args], "OPEN4res", newMessage[OPEN4res]},
	OP_OPENATTR:             {"OPENATTR", "OPENATTR4args", newMessage[OPENATTR4args], "OPENATTR4res", newMessage[Status4res]},
	OP_OPEN_CONFIRM:         {"OPEN_CONFIRM", "OPEN_CONFIRM4args", newMessage[OPEN_CONFIRM4args], "OPEN_CONFIRM4res", newMessage[OPEN_CONFIRM4res]},
	OP_OPEN_DOWNGRADE:       {"OPEN_DOWNGRADE", "OPEN_DOWNGRADE4args", newMessage[OPEN_DOWNGRADE4args], "OPEN_DOWNGRADE4res", newMessage[OPEN_DOWNGRADE4res]},
	OP_PUTFH:                {"PUTFH", "PUTFH4args", newMessage[PUTFH4args], "PUTFH4res", newMessage[Status4res]},
	OP_PUTPUBFH:             {"PUTPUBFH", "void", xdr.NewVoid, "PUTPUBFH4res", newMessage[Status4res]},
	OP_PUTROOTFH:            {"PUTROOTFH", "void", xdr.NewVoid, "PUTROOTFH4res", newMessage[Status4res]},
	OP_READ:                 {"READ", "READ4args", newMessage[READ4args], "READ4res", newMessage[READ4res]},
	OP_READDIR:              {"READDIR", "READDIR4args", newMessage[READDIR4args], "READDIR4res", newMessage[READDIR4res]},
	OP_READLINK:             {"READLINK", "void", xdr.NewVoid, "READLINK4res", newMessage[READLINK4res]},
	OP_REMOVE:               {"REMOVE", "REMOVE4args", newMessage[REMOVE4args], "REMOVE4res", newMessage[REMOVE4res]},
	OP_RENAME:               {"RENAME", "RENAME4args", newMessage[RENAME4args], "RENAME4res", newMessage[RENAME4res]},
	OP_RENEW:                {"RENEW", "RENEW4args", newMessage[RENEW4args], "RENEW4res", newMessage[Status4res]},
	OP_RESTOREFH:            {"RESTOREFH", "void", xdr.NewVoid, "RESTOREFH4res", newMessage[Status4res]},
	OP_SAVEFH:               {"SAVEFH", "void", xdr.NewVoid, "SAVEFH4res", newMessage[Status4res]},
	OP_SECINFO:              {"SECINFO", "SECINFO4args", newMessage[SECINFO4args], "SECINFO4res", newMessage[SECINFO4res]},
	OP_SETATTR:              {"SETATTR", "SETATTR4args", newMessage[SETATTR4args], "SETATTR4res", newMessage[SETATTR4res]},
	OP_SETCLIENTID:          {"SETCLIENTID", "SETCLIENTID4args", newMessage[SETCLIENTID4args], "SETCLIENTID4res", newMessage[SETCLIENTID4res]},
	OP_SETCLIENTID_CONFIRM:  {"SETCLIENTID_CONFIRM", "SETCLIENTID_CONFIRM4args", newMessage[SETCLIENTID_CONFIRM4args], "SETCLIENTID_CONFIRM4res", newMessage[Status4res]},
	OP_VERIFY:               {"VERIFY", "VERIFY4args", newMessage[VERIFY4args], "VERIFY4res", newMessage[Status4res]},
	OP_WRITE:                {"WRITE", "WRITE4args", newMessage[WRITE4args], "WRITE4res", newMessage[WRITE4res]},
	OP_RELEASE_LOCKOWNER:    {"RELEASE_LOCKOWNER", "RELEASE_LOCKOWNER4args", newMessage[RELEASE_LOCKOWNER4args], "RELEASE_LOCKOWNER4res", newMessage[Status4res]},
	OP_BACKCHANNEL_CTL:      {"BACKCHANNEL_CTL", "BACKCHANNEL_CTL4args", newMessage[BACKCHANNEL_CTL4args], "BACKCHANNEL_CTL4res", newMessage[BACKCHANNEL_CTL4res]},
	OP_BIND_CONN_TO_SESSION: {"BIND_CONN_TO_SESSION", "BIND_CONN_TO_SESSION4args", newMessage[BIND_CONN_TO_SESSION4args], "BIND_CONN_TO_SESSION4res", newMessage[BIND_CONN_TO_SESSION4res]},
	OP_EXCHANGE_ID:          {"EXCHANGE_ID", "EXCHANGE_ID4args", newMessage[EXCHANGE_ID4args], "EXCHANGE_ID4res", newMessage[EXCHANGE_ID4res]},
	OP_CREATE_SESSION:       {"CREATE_SESSION", "CREATE_SESSION4args", newMessage[CREATE_SESSION4args], "CREATE_SESSION4res", newMessage[CREATE_SESSION4res]},
	OP_DESTROY_SESSION:      {"DESTROY_SESSION", "DESTROY_SESSION4args", newMessage[DESTROY_SESSION4args], "DESTROY_SESSION4res", newMessage[DESTROY_SESSION4res]},
	OP_FREE_STATEID:         {"FREE_STATEID", "FREE_STATEID4args", newMessage[FREE_STATEID4args], "FREE_STATEID4res", newMessage[FREE_STATEID4res]},
	OP_GET_DIR_DELEGATION:   {"GET_DIR_DELEGATION", "GET_DIR_DELEGATION4args", newMessage[GET_DIR_DELEGATION4args], "GET_DIR_DELEGATION4res", newMessage[GET_DIR_DELEGATION4res]},
	OP_GETDEVICEINFO:        {"GETDEVICEINFO", "GETDEVICEINFO4args", newMessage[GETDEVICEINFO4args], "GETDEVICEINFO4res", newMessage[GETDEVICEINFO4res]},
	OP_GETDEVICELIST:        {"GETDEVICELIST", "GETDEVICELIST4args", newMessage[GETDEVICELIST4args], "GETDEVICELIST4res", newMessage[GETDEVICELIST4res]},
	OP_LAYOUTCOMMIT:         {"LAYOUTCOMMIT", "LAYOUTCOMMIT4args", newMessage[LAYOUTCOMMIT4args], "LAYOUTCOMMIT4res", newMessage[LAYOUTCOMMIT4res]},
	OP_LAYOUTGET:            {"LAYOUTGET", "LAYOUTGET4args", newMessage[LAYOUTGET4args], "LAYOUTGET4res", newMessage[LAYOUTGET4res]},
	OP_LAYOUTRETURN:         {"LAYOUTRETURN", "LAYOUTRETURN4args", newMessage[LAYOUTRETURN4args], "LAYOUTRETURN4res", newMessage[LAYOUTRETURN4res]},
	OP_SECINFO_NO_NAME:      {"SECINFO_NO_NAME", "SECINFO_NO_NAME4args", newMessage[SECINFO_NO_NAME4args], "SECINFO_NO_NAME4res", newMessage[SECINFO4res]},
	OP_SEQUENCE:             {"SEQUENCE", "SEQUENCE4args", newMessage[SEQUENCE4args], "SEQUENCE4res", newMessage[SEQUENCE4res]},
	OP_SET_SSV:              {"SET_SSV", "SET_SSV4args", newMessage[SET_SSV4args], "SET_SSV4res", newMessage[SET_SSV4res]},
	OP_TEST_STATEID:         {"TEST_STATEID", "TEST_STATEID4args", newMessage[TEST_STATEID4args], "TEST_STATEID4res", newMessage[TEST_STATEID4res]},
	OP_WANT_DELEGATION:      {"WANT_DELEGATION", "WANT_DELEGATION4args", newMessage[WANT_DELEGATION4args], "WANT_DELEGATION4res", newMessage[WANT_DELEGATION4res]},
	OP_DESTROY_CLIENTID:     {"DESTROY_CLIENTID", "DESTROY_CLIENTID4args", newMessage[DESTROY_CLIENTID4args], "DESTROY_CLIENTID4res", newMessage[DESTROY_CLIENTID4res]},
	OP_RECLAIM_COMPLETE:     {"RECLAIM_COMPLETE", "RECLAIM_COMPLETE4args", newMessage[RECLAIM_COMPLETE4args], "RECLAIM_COMPLETE4res", newMessage[RECLAIM_COMPLETE4res]},
	OP_ALLOCATE:             {"ALLOCATE", "ALLOCATE4args", newMessage[ALLOCATE4args], "ALLOCATE4res", newMessage[ALLOCATE4res]},
	OP_COPY:                 {"COPY", "COPY4args", newMessage[COPY4args], "COPY4res", newMessage[COPY4res]},
	OP_COPY_NOTIFY:          {"COPY_NOTIFY", "COPY_NOTIFY4args", newMessage[COPY_NOTIFY4args], "COPY_NOTIFY4res", newMessage[COPY_NOTIFY4res]},
	OP_DEALLOCATE:           {"DEALLOCATE", "DEALLOCATE4args", newMessage[DEALLOCATE4args], "DEALLOCATE4res", newMessage[DEALLOCATE4res]},
	OP_IO_ADVISE:            {"IO_ADVISE", "IO_ADVISE4args", newMessage[IO_ADVISE4args], "IO_ADVISE4res", newMessage[IO_ADVISE4res]},
	OP_LAYOUTERROR:          {"LAYOUTERROR", "LAYOUTERROR4args", newMessage[LAYOUTERROR4args], "LAYOUTERROR4res", newMessage[LAYOUTERROR4res]},
	OP_LAYOUTSTATS:          {"LAYOUTSTATS", "LAYOUTSTATS4args", newMessage[LAYOUTSTATS4args], "LAYOUTSTATS4res", newMessage[LAYOUTSTATS4res]},
	OP_OFFLOAD_CANCEL:       {"OFFLOAD_CANCEL", "OFFLOAD_CANCEL4args", newMessage[OFFLOAD_CANCEL4args], "OFFLOAD_CANCEL4res", newMessage[OFFLOAD_CANCEL4res]},
	OP_OFFLOAD_STATUS:       {"OFFLOAD_STATUS", "OFFLOAD_STATUS4args", newMessage[OFFLOAD_STATUS4args], "OFFLOAD_STATUS4res", newMessage[OFFLOAD_STATUS4res]},
	OP_READ_PLUS:            {"READ_PLUS", "READ_PLUS4args", newMessage[READ_PLUS4args], "READ_PLUS4res", newMessage[READ_PLUS4res]},
	OP_SEEK:                 {"SEEK", "SEEK4args", newMessage[SEEK4args], "SEEK4res", newMessage[SEEK4res]},
	OP_WRITE_SAME:           {"WRITE_SAME", "WRITE_SAME4args", newMessage[WRITE_SAME4args], "WRITE_SAME4res", newMessage[WRITE_SAME4res]},
	OP_CLONE:                {"CLONE", "CLONE4args", newMessage[CLONE4args], "CLONE4res", newMessage[CLONE4res]},
	OP_GETXATTR:             {"GETXATTR", "GETXATTR4args", newMessage[GETXATTR4args], "GETXATTR4res", newMessage[GETXATTR4res]},
	OP_SETXATTR:             {"SETXATTR", "SETXATTR4args", newMessage[SETXATTR4args], "SETXATTR4res", newMessage[SETXATTR4res]},
	OP_LISTXATTRS:           {"LISTXATTRS", "LISTXATTRS4args", newMessage[LISTXATTRS4args], "LISTXATTRS4res", newMessage[LISTXATTRS4res]},
	OP_REMOVEXATTR:          {"REMOVEXATTR", "REMOVEXATTR4args", newMessage[REMOVEXATTR4args], "REMOVEXATTR4res", newMessage[REMOVEXATTR4res]},
	0:                       {"ILLEGAL", "void", xdr.NewVoid, "ILLEGAL4res", newMessage[Status4res]},
}

// cbOps are the operations of the callback program.
var cbOps = opTable{
	OP_CB_GETATTR:              {"CB_GETATTR", "CB_GETATTR4args", newMessage[CB_GETATTR4args], "CB_GETATTR4res", newMessage[CB_GETATTR4res]},
	OP_CB_RECALL:               {"CB_RECALL", "CB_RECALL4args", newMessage[CB_RECALL4args], "CB_RECALL4res", newMessage[Status4res]},
	OP_CB_LAYOUTRECALL:         {"CB_LAYOUTRECALL", "CB_LAYOUTRECALL4args", newMessage[CB_LAYOUTRECALL4args], "CB_LAYOUTRECALL4res", newMessage[CB_LAYOUTRECALL4res]},
	OP_CB_NOTIFY:               {"CB_NOTIFY", "CB_NOTIFY4args", newMessage[CB_NOTIFY4args], "CB_NOTIFY4res", newMessage[CB_NOTIFY4res]},
	OP_CB_PUSH_DELEG:           {"CB_PUSH_DELEG", "CB_PUSH_DELEG4args", newMessage[CB_PUSH_DELEG4args], "CB_PUSH_DELEG4res", newMessage[CB_PUSH_DELEG4res]},
	OP_CB_RECALL_ANY:           {"CB_RECALL_ANY", "CB_RECALL_ANY4args", newMessage[CB_RECALL_ANY4args], "CB_RECALL_ANY4res", newMessage[CB_RECALL_ANY4res]},
	OP_CB_RECALLABLE_OBJ_AVAIL: {"CB_RECALLABLE_OBJ_AVAIL", "CB_RECALLABLE_OBJ_AVAIL4args", newMessage[CB_RECALL_ANY4args], "CB_RECALLABLE_OBJ_AVAIL4res", newMessage[CB_RECALLABLE_OBJ_AVAIL4res]},
	OP_CB_RECALL_SLOT:          {"CB_RECALL_SLOT", "CB_RECALL_SLOT4args", newMessage[CB_RECALL_SLOT4args], "CB_RECALL_SLOT4res", newMessage[CB_RECALL_SLOT4res]},
	OP_CB_SEQUENCE:             {"CB_SEQUENCE", "CB_SEQUENCE4args", newMessage[CB_SEQUENCE4args], "CB_SEQUENCE4res", newMessage[CB_SEQUENCE4res]},
	OP_CB_WANTS_CANCELLED:      {"CB_WANTS_CANCELLED", "CB_WANTS_CANCELLED4args", newMessage[CB_WANTS_CANCELLED4args], "CB_WANTS_CANCELLED4res", newMessage[CB_WANTS_CANCELLED4res]},
	OP_CB_NOTIFY_LOCK:          {"CB_NOTIFY_LOCK", "CB_NOTIFY_LOCK4args", newMessage[CB_NOTIFY_LOCK4args], "CB_NOTIFY_LOCK4res", newMessage[CB_NOTIFY_LOCK4res]},
	OP_CB_NOTIFY_DEVICEID:      {"CB_NOTIFY_DEVICEID", "CB_NOTIFY_DEVICEID4args", newMessage[CB_NOTIFY_DEVICEID4args], "CB_NOTIFY_DEVICEID4res", newMessage[CB_NOTIFY_DEVICEID4res]},
	OP_CB_OFFLOAD:              {"CB_OFFLOAD", "CB_OFFLOAD4args", newMessage[CB_OFFLOAD4args], "CB_OFFLOAD4res", newMessage[CB_OFFLOAD4res]},
	0:                          {"CB_ILLEGAL", "void", xdr.NewVoid, "CB_ILLEGAL4res", newMessage[Status4res]},
}
