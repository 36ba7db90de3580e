package bindings

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// LockOwner is an owner of locks of NFSv3 as this run calls it. Servers know a host by its
// address and by its name, some by its address alone, and an owner by its number: here these are
// unlike those of other runs, and of other hosts of the capture.
type LockOwner struct {
	Host, Name []byte
	Svid       int32
}

// LockPrefix is how the names of hosts begin by which a run introduces itself to a lock
// manager. No other run has it. Linux accepts no slash in it.
func LockPrefix(tag string) []byte {
	return fmt.Appendf(nil, "rpcrdma-replay-%s.", strings.ReplaceAll(tag, "/", "-"))
}

// maxHost is how long in bytes the name of a host becomes.
const maxHost = 128

// LockOwner is owner ref of the plan.
func (w *Clone) LockOwner(ref int) LockOwner {
	o := &w.load.Tables.Owners[ref-1]
	host := fmt.Appendf(LockPrefix(w.tag), "%d.%s", w.Number, strings.ReplaceAll(o.Host, "/", "-"))
	host = host[:min(len(host), maxHost)]
	f := fnv.New32a()
	_, _ = f.Write(host[:len(LockPrefix(w.tag))])
	// The numbers of a run follow each other.
	svid := int32(f.Sum32()&0x3fffffff) + int32(w.Number*len(w.load.Tables.Owners)+ref)
	return LockOwner{Host: host, Name: fmt.Appendf(nil, "%d@%s", svid, host), Svid: svid}
}
