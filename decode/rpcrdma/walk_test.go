package rpcrdma

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

// printer writes down what it is shown, one item per line.
type printer struct {
	text  strings.Builder
	depth int
}

func (p *printer) line(format string, args ...any) {
	fmt.Fprintf(&p.text, strings.Repeat(" ", p.depth)+format+"\n", args...)
}

func (p *printer) Begin(name, typ string, i int)            { p.line("%s %s %d", name, typ, i); p.depth++ }
func (p *printer) End()                                     { p.depth-- }
func (p *printer) Uint(name string, v uint64)               { p.line("%s %#x", name, v) }
func (p *printer) Int(name string, v int64)                 { p.line("%s %d", name, v) }
func (p *printer) Bool(name string, v bool)                 { p.line("%s %v", name, v) }
func (p *printer) Enum(name string, v uint32, s string)     { p.line("%s %d %s", name, v, s) }
func (p *printer) Flags(name string, v uint64, s string)    { p.line("%s %#x %s", name, v, s) }
func (p *printer) Bytes(name string, v []byte)              { p.line("%s %x", name, v) }
func (p *printer) String(name string, v []byte)             { p.line("%s %q", name, v) }
func (p *printer) Data(name string, d xdr.Data)             { p.line("%s %d", name, d.Length) }
func (p *printer) Time(name string, sec int64, nsec uint32) { p.line("%s %d.%09d", name, sec, nsec) }

func TestWalk(t *testing.T) {
	tests := []struct{ name, msg, want string }{
		{"write chunk", readCall, `rpcrdma rdma_msg -1
 rdma_xid 0x8a9383
 rdma_vers 0x1
 rdma_credit 0x80
 rdma_proc 0 RDMA_MSG
 rdma_writes xdr_write_chunk 0
  target xdr_rdma_segment 0
   handle 0x11fc
   length 0x1000
   offset 0x8a938303c93000
`},
		{"error", errVers, `rpcrdma rdma_msg -1
 rdma_xid 0x11223344
 rdma_vers 0x7
 rdma_credit 0x40
 rdma_proc 4 RDMA_ERROR
 err 1 ERR_VERS
 rdma_vers_low 0x1
 rdma_vers_high 0x1
`},
		{"version 0", solarisNoMsg, `rpcrdma rdma_msg -1
 rdma_xid 0xaabbccdd
 rdma_vers 0x0
 rdma_proc 1 RDMA_NOMSG
 rdma_chunks xdr_read_chunk 0
  position 0x0
  target xdr_rdma_segment -1
   handle 0x1234
   length 0x800
   offset 0xdeadb000
`},
		{"properties", v2Props, `rpcrdma rdma_msg -1
 rdma_xid 0x1020304
 rdma_vers 0x2
 rdma_credit 0x40
 rdma_htype 7 RDMA2_CONNPROP_FINAL
 rdma_props rpcrdma2_propval 0
  rdma_which 1 RDMA2_PROPID_SBSIZ
  rdma_data 0x1000
 rdma_props rpcrdma2_propval 1
  rdma_which 5 RDMA2_PROPID_BRS
  rdma_data 1 RDMA2_RVRSDIR_SIMPLE
 rdma_props rpcrdma2_propval 2
  rdma_which 6 RDMA2_PROPID_HOSTAUTH
  rdma_data 616263
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := unhex(t, tt.msg)
			var h Header
			if err := h.Decode(b, len(b)); err != nil {
				t.Fatal(err)
			}
			var p printer
			h.Walk(&p)
			if p.text.String() != tt.want {
				t.Errorf("got\n%swant\n%s", p.text.String(), tt.want)
			}
			if p.depth != 0 {
				t.Error("Begin and End do not match")
			}
		})
	}
}
