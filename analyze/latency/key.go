package latency

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Key is a property that transactions are grouped by.
type Key uint8

// Keys.
const (
	ByOperation  Key = iota // program, version, and the most significant operation
	ByProcedure             // the same, but a COMPOUND is not split by operation
	ByClient                // address
	ByServer                // address
	ByConnection            // number
	ByFile                  // path if known, otherwise file handle
	BySize                  // READ and WRITE: bytes requested, in powers of two
	ByStatus                // outcome
	ByModel                 // how the data was transferred
	ByFabric                // rocev2, iwarp, tcp, …
	ByTunnel                // outermost wrapping: type and identifier
	numKeys
)

var keyNames = [numKeys]string{
	"operation", "procedure", "client", "server", "connection", "file", "size", "status", "model", "fabric", "tunnel",
}

func (k Key) String() string { return keyNames[k] }

// ofHosts reports whether a key is an address, or what belongs to one.
func (k Key) ofHosts() bool { return k == ByClient || k == ByServer || k == ByFile }

// KeyNames are the words that ParseKeys accepts, except "none".
func KeyNames() []string { return keyNames[:] }

// ParseKeys parses a comma-separated list of keys. "none" puts all transactions into one group.
func ParseKeys(s string) ([]Key, error) {
	if s == "none" {
		return []Key{}, nil
	}
	var keys []Key
	for _, word := range strings.Split(s, ",") {
		found := false
		for k, name := range keyNames {
			if w := strings.TrimSpace(word); name != w && (w != "op" || Key(k) != ByOperation) { // op is its name in filters
				continue
			}
			found = true
			if slices.Contains(keys, Key(k)) {
				return nil, fmt.Errorf("%s is given twice", name)
			}
			keys = append(keys, Key(k))
		}
		if !found {
			return nil, fmt.Errorf("cannot group by %q: use none, or %s, several with commas", word, strings.Join(keyNames[:], ", "))
		}
	}
	return keys, nil
}

// appendKey appends what distinguishes the groups of a key, in any form that is cheap to compute. Hosts of several
// networks have equal addresses and one group in the end, but it is known then that it has several.
func appendKey(b []byte, k Key, v *rpc.View) []byte {
	tx := v.Tx
	switch k {
	case ByOperation, ByProcedure:
		b = binary.LittleEndian.AppendUint32(b, tx.Program)
		b = binary.LittleEndian.AppendUint32(b, tx.Version)
		minor, ok := v.MinorVersion()
		b = binary.LittleEndian.AppendUint32(b, minor)
		flags := byte(0)
		if ok {
			flags |= 1
		}
		if tx.Named {
			flags |= 2
		}
		b = append(b, flags)
		if k == ByOperation {
			b = append(b, text.Operation(v)...)
		} else {
			b = binary.LittleEndian.AppendUint32(b, tx.Procedure)
		}
	case ByClient:
		b = binary.LittleEndian.AppendUint64(b, tx.Connection.Tenant)
		a := tx.Client().Addr.As16()
		b = append(b, a[:]...)
	case ByServer:
		b = binary.LittleEndian.AppendUint64(b, tx.Connection.Tenant)
		a := tx.Server().Addr.As16()
		b = append(b, a[:]...)
	case ByConnection:
		b = binary.LittleEndian.AppendUint64(b, uint64(tx.Connection.ID))
	case ByFile:
		b = binary.LittleEndian.AppendUint64(b, tx.Connection.Tenant)
		b = AppendFile(b, v)
	case BySize:
		b = append(b, sizeClass(v))
	case ByStatus:
		b = append(b, v.Status()...)
		b = append(b, byte(tx.State))
	case ByModel:
		b = append(b, byte(ModelOf(tx)))
	case ByFabric:
		b = append(b, byte(tx.Connection.Fabric))
	case ByTunnel:
		b = appendTunnel(b, tx.Connection.Tunnel)
	}
	return b
}

// label is the name of the group that a transaction belongs to.
func label(k Key, v *rpc.View) string {
	tx := v.Tx
	var b []byte
	switch k {
	case ByOperation, ByProcedure:
		b = text.Program(b, v)
		name := v.ProcedureName()
		if k == ByOperation {
			name = text.Operation(v)
		}
		if name == "" {
			name = "?"
		}
		b = append(b, ' ')
		b = append(b, name...)
	case ByClient:
		b = append(b, link.AddrString(tx.Client().Addr)...)
	case ByServer:
		b = append(b, link.AddrString(tx.Server().Addr)...)
	case ByConnection:
		b = strconv.AppendInt(b, int64(tx.Connection.ID), 10)
	case ByFile:
		b = AppendFile(b, v)
	case BySize:
		b = append(b, sizeName(sizeClass(v))...)
	case ByStatus:
		b = append(b, statusName(v)...)
	case ByModel:
		b = append(b, ModelOf(tx).String()...)
	case ByFabric:
		b = append(b, tx.Connection.Fabric.String()...)
	case ByTunnel:
		b = appendTunnel(b, tx.Connection.Tunnel)
	}
	return string(clip(b))
}

// appendTunnel appends the network that a wrapping belongs to.
func appendTunnel(b []byte, t *rdma.Tunnel) []byte {
	if t == nil {
		return append(b, '-')
	}
	return text.Network(b, t)
}

// clip limits the length of a name, which may be as long as a message.
func clip(b []byte) []byte {
	if len(b) <= maxLabel {
		return b
	}
	b = b[:maxLabel-len("…")]
	for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return append(b[:max(len(b)-1, 0)], "…"...)
}

// AppendFile appends the path of a transaction's file, or its short handle; "-" if there is none, or its name was cut off.
func AppendFile(b []byte, v *rpc.View) []byte {
	f := v.File()
	if f == nil || f.Unnamed {
		return append(b, '-')
	}
	start := len(b)
	if b = v.AppendPath(b); len(b) > start {
		return b
	}
	if f.Handle != nil {
		return text.Handle(b, f.Handle)
	}
	return append(b, '-')
}

// Size classes: 0 is not a READ or WRITE, n+1 a count of n binary digits.
func sizeClass(v *rpc.View) uint8 {
	f := v.File()
	if f == nil || !f.HasRange {
		return 0
	}
	switch text.Operation(v) {
	case "READ", "WRITE", "READ_PLUS":
	default:
		return 0
	}
	if f.Count == 0 {
		return 1
	}
	return uint8(bits.Len64(f.Count-1)) + 2
}

// sizeName is the largest size of a class: "≤64K" holds sizes above 32K.
func sizeName(class uint8) string {
	switch class {
	case 0:
		return "-"
	case 1:
		return "0"
	}
	if class-2 >= 64 {
		return ">8E"
	}
	return "≤" + units.Size(1<<(class-2))
}

// statusName is the outcome of a transaction as a word.
func statusName(v *rpc.View) string {
	if v.Tx.ReplyLost() {
		return failure(v)
	}
	switch v.Tx.State {
	case transaction.NoReply:
		return "no reply"
	case transaction.NoCall:
		return "no call"
	}
	if s := v.Status(); s != "" {
		return s
	}
	return "unknown"
}

// isRDMA reports whether a fabric carries RPC-over-RDMA.
func isRDMA(f rdma.Fabric) bool { return f != rdma.TCP && f != rdma.UDP }
