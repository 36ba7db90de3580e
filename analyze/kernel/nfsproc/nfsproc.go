// Package nfsproc knows what the procedures of the Linux NFSv4 client are on the wire: mountstats and trace
// events name them, a packet has a COMPOUND.
//
// It is independent of the rest of the module, so that the two sides of the comparison with the kernel cannot
// share a mistake.
package nfsproc

import (
	"slices"
	"strings"
)

// procedures maps the names of the Linux client's NFSv4 procedures (fs/nfs/nfs4xdr.c) to the COMPOUND that
// each of them sends, without the SEQUENCE that leads it in minor versions above 0. An operation in brackets
// may be absent; alternatives are separated by "|". Several procedures are the same COMPOUND with other
// attributes and cannot be distinguished by their operations.
var procedures = compile(map[string]string{
	"READ":                 "PUTFH READ",
	"READ_PLUS":            "PUTFH READ_PLUS",
	"WRITE":                "PUTFH WRITE [GETATTR]",
	"COMMIT":               "PUTFH COMMIT",
	"OPEN":                 "PUTFH OPEN GETFH [ACCESS] GETATTR [LAYOUTGET]",
	"OPEN_NOATTR":          "PUTFH OPEN [ACCESS] GETATTR [LAYOUTGET]",
	"OPEN_CONFIRM":         "PUTFH OPEN_CONFIRM",
	"OPEN_DOWNGRADE":       "PUTFH [LAYOUTRETURN] OPEN_DOWNGRADE",
	"CLOSE":                "PUTFH [LAYOUTRETURN] [GETATTR] CLOSE",
	"SETATTR":              "PUTFH SETATTR [GETATTR]",
	"FSINFO":               "PUTFH GETATTR",
	"PATHCONF":             "PUTFH GETATTR",
	"STATFS":               "PUTFH GETATTR",
	"SERVER_CAPS":          "PUTFH GETATTR",
	"GETATTR":              "PUTFH GETATTR",
	"GETACL":               "PUTFH GETATTR",
	"SETACL":               "PUTFH SETATTR",
	"RENEW":                "RENEW",
	"SETCLIENTID":          "SETCLIENTID",
	"SETCLIENTID_CONFIRM":  "SETCLIENTID_CONFIRM",
	"LOCK":                 "PUTFH LOCK",
	"LOCKT":                "PUTFH LOCKT",
	"LOCKU":                "PUTFH LOCKU",
	"ACCESS":               "PUTFH ACCESS [GETATTR]",
	"LOOKUP":               "PUTFH LOOKUP GETFH GETATTR",
	"LOOKUPP":              "PUTFH LOOKUPP GETFH GETATTR",
	"LOOKUP_ROOT":          "PUTROOTFH GETFH GETATTR",
	"REMOVE":               "PUTFH REMOVE",
	"RENAME":               "PUTFH SAVEFH PUTFH RENAME",
	"LINK":                 "PUTFH SAVEFH PUTFH LINK RESTOREFH GETATTR",
	"SYMLINK":              "PUTFH CREATE GETFH GETATTR",
	"CREATE":               "PUTFH CREATE GETFH GETATTR",
	"READLINK":             "PUTFH READLINK",
	"READDIR":              "PUTFH READDIR",
	"DELEGRETURN":          "PUTFH [LAYOUTRETURN] [SETATTR] [GETATTR] DELEGRETURN",
	"FS_LOCATIONS":         "PUTFH LOOKUP GETATTR [RENEW]|PUTFH GETATTR [RENEW]",
	"RELEASE_LOCKOWNER":    "RELEASE_LOCKOWNER",
	"SECINFO":              "PUTFH SECINFO",
	"FSID_PRESENT":         "PUTFH GETFH [RENEW]",
	"EXCHANGE_ID":          "EXCHANGE_ID",
	"CREATE_SESSION":       "CREATE_SESSION",
	"DESTROY_SESSION":      "DESTROY_SESSION",
	"SEQUENCE":             "",
	"GET_LEASE_TIME":       "PUTROOTFH GETATTR",
	"RECLAIM_COMPLETE":     "RECLAIM_COMPLETE",
	"LAYOUTGET":            "PUTFH LAYOUTGET",
	"GETDEVICEINFO":        "GETDEVICEINFO",
	"LAYOUTCOMMIT":         "PUTFH LAYOUTCOMMIT GETATTR",
	"LAYOUTRETURN":         "PUTFH LAYOUTRETURN",
	"LAYOUTSTATS":          "PUTFH LAYOUTSTATS",
	"LAYOUTERROR":          "PUTFH LAYOUTERROR",
	"SECINFO_NO_NAME":      "PUTROOTFH SECINFO_NO_NAME",
	"TEST_STATEID":         "TEST_STATEID",
	"FREE_STATEID":         "FREE_STATEID",
	"BIND_CONN_TO_SESSION": "BIND_CONN_TO_SESSION",
	"DESTROY_CLIENTID":     "DESTROY_CLIENTID",
	"SEEK":                 "PUTFH SEEK",
	"ALLOCATE":             "PUTFH ALLOCATE GETATTR",
	"DEALLOCATE":           "PUTFH DEALLOCATE GETATTR",
	"CLONE":                "PUTFH SAVEFH PUTFH CLONE GETATTR",
	"COPY":                 "PUTFH SAVEFH PUTFH COPY [COMMIT]",
	"COPY_NOTIFY":          "PUTFH COPY_NOTIFY",
	"OFFLOAD_CANCEL":       "PUTFH OFFLOAD_CANCEL",
	"GETXATTR":             "PUTFH GETXATTR",
	"SETXATTR":             "PUTFH SETXATTR [GETATTR]",
	"LISTXATTRS":           "PUTFH LISTXATTRS",
	"REMOVEXATTR":          "PUTFH REMOVEXATTR",
})

// withoutSequence are the procedures that make or break the session and so
// cannot be in it.
var withoutSequence = []string{"EXCHANGE_ID", "CREATE_SESSION", "DESTROY_SESSION", "BIND_CONN_TO_SESSION", "DESTROY_CLIENTID"}

// compile expands what may be absent to all the lists.
func compile(in map[string]string) map[string][][]string {
	out := make(map[string][][]string, len(in))
	for name, text := range in {
		for alternative := range strings.SplitSeq(text, "|") {
			lists := [][]string{nil}
			for _, w := range strings.Fields(alternative) {
				op := strings.Trim(w, "[]")
				n := len(lists)
				for i := range n {
					longer := append(slices.Clone(lists[i]), op)
					if op == w {
						lists[i] = longer
					} else {
						lists = append(lists, longer)
					}
				}
			}
			out[name] = append(out[name], lists...)
		}
	}
	return out
}

// Matches reports whether ops can be the COMPOUND of the client's procedure. If short, an operation failed,
// the results end there, and so may the list.
func Matches(procedure string, minor uint32, ops []string, short bool) bool {
	for _, list := range procedures[procedure] {
		if minor > 0 && !slices.Contains(withoutSequence, procedure) {
			list = append([]string{"SEQUENCE"}, list...)
		}
		if short && len(ops) <= len(list) {
			list = list[:len(ops)]
		}
		if slices.Equal(list, ops) {
			return true
		}
	}
	return false
}

// Candidates are the client's procedures that a COMPOUND can be, sorted by
// name.
func Candidates(minor uint32, ops []string) []string {
	var names []string
	for name := range procedures {
		if Matches(name, minor, ops, false) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
