package truth

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// TransactionSchema is the value of the key "schema" that this package reads.
const TransactionSchema = "rpcrdma.transaction/1"

// maxLine bounds one line of ndjson in bytes. A call may carry many segments,
// but a line of this size is no longer a transaction.
const maxLine = 16 << 20

// Transaction is one line of `rpcrdma-dump -T ndjson`. Only reading is needed
// here, and only the keys that can be checked against a kernel.
type Transaction struct {
	Schema            string           `json:"schema"`
	Time              time.Time        `json:"time"`
	XID               uint32           `json:"xid"`
	Connection        int              `json:"connection"`
	Fabric            string           `json:"fabric"`
	Client            string           `json:"client"`
	Server            string           `json:"server"`
	ClientEndpoint    uint64           `json:"client_endpoint"`
	ServerEndpoint    uint64           `json:"server_endpoint"`
	Direction         string           `json:"direction"`
	Program           string           `json:"program"`
	Version           uint32           `json:"version"`
	Procedure         string           `json:"procedure"`
	MinorVersion      *uint32          `json:"minor_version"`
	Operations        []Operation      `json:"operations"`
	Status            string           `json:"status"`
	CallFrame         *uint64          `json:"call_frame"`
	ReplyFrame        *uint64          `json:"reply_frame"`
	CallType          string           `json:"call_type"`
	ReplyType         string           `json:"reply_type"`
	CreditsRequested  uint32           `json:"credits_requested"`
	CreditsGranted    uint32           `json:"credits_granted"`
	ReadChunks        []ReadChunk      `json:"read_chunks"`
	WriteChunks       [][]SegmentJSON  `json:"write_chunks"`
	WrittenChunks     [][]SegmentJSON  `json:"written_chunks"`
	ReplyChunk        []SegmentJSON    `json:"reply_chunk"`
	WrittenReplyChunk []SegmentJSON    `json:"written_reply_chunk"`
	RDMAReads         uint64           `json:"rdma_reads"`
	RDMAReadBytes     uint64           `json:"rdma_read_bytes"`
	RDMAWrites        uint64           `json:"rdma_writes"`
	RDMAWriteBytes    uint64           `json:"rdma_write_bytes"`
	CallBytes         uint64           `json:"call_bytes"`
	ReplyBytes        uint64           `json:"reply_bytes"`
	Retransmits       uint64           `json:"retransmits"`
	LatencyNS         map[string]int64 `json:"latency_ns"`
	State             string           `json:"state"`
	Notes             []string         `json:"notes"`

	Line    int      `json:"-"` // 1-based line of the input
	Missing []string `json:"-"` // required keys that the line does not have
}

// Operation is one operation of an NFSv4 COMPOUND.
type Operation struct {
	Op     string `json:"op"`
	Status string `json:"status"`
}

// SegmentJSON is one RDMA segment of a chunk list.
type SegmentJSON struct {
	Handle uint32 `json:"handle"`
	Length uint32 `json:"length"`
	Offset uint64 `json:"offset"`
}

// ReadChunk is the read segments that share a position in the call.
type ReadChunk struct {
	Position uint32        `json:"position"`
	Segments []SegmentJSON `json:"segments"`
}

// requiredKeys are the keys that every line must have. The others are
// required only where they apply.
var requiredKeys = []string{
	"schema", "time", "xid", "connection", "fabric", "client", "server",
	"client_endpoint", "server_endpoint", "direction", "program", "version",
	"procedure", "status", "call_frame", "reply_frame", "call_type",
	"reply_type", "credits_requested", "credits_granted", "read_chunks",
	"write_chunks", "written_chunks", "reply_chunk", "written_reply_chunk",
	"rdma_reads", "rdma_read_bytes", "rdma_writes", "rdma_write_bytes",
	"call_bytes", "reply_bytes", "retransmits", "latency_ns", "state",
	"notes",
}

// OverRDMA reports whether the transaction travelled in RPC-over-RDMA messages.
func (t *Transaction) OverRDMA() bool { return t.Fabric != "tcp" && t.Fabric != "udp" }

// ReadTransactions reads ndjson to its end. An error names the line.
func ReadTransactions(r io.Reader) ([]*Transaction, error) {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	var txs []*Transaction
	for n := 1; s.Scan(); n++ {
		line := bytes.TrimSpace(s.Bytes())
		if len(line) == 0 {
			continue
		}
		tx := &Transaction{Line: n}
		if err := json.Unmarshal(line, tx); err != nil {
			return nil, fmt.Errorf("ndjson line %d: %w", n, err)
		}
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(line, &keys); err != nil {
			return nil, fmt.Errorf("ndjson line %d: %w", n, err)
		}
		for _, k := range requiredKeys {
			if _, ok := keys[k]; !ok {
				tx.Missing = append(tx.Missing, k)
			}
		}
		txs = append(txs, tx)
	}
	if err := s.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, fmt.Errorf("ndjson: a line is longer than %d bytes", maxLine)
		}
		return nil, err
	}
	return txs, nil
}
