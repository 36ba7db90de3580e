package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// rule says what the packages that match a pattern may import. A pattern is
// the folder of a package, "" for the module's root; "x/..." stands for x and
// all below it. The first rule that matches a package decides.
type rule struct {
	packages string
	own      []string // patterns of packages of this module
	foreign  []string // modules of others, by path or its beginning; "*" allows all but ui
	tests    []string // patterns of packages of this module that only test files may import
	cgo      bool
}

// ui are the modules that draw for people. Only commands have one in front of
// them.
var ui = []string{
	"github.com/spf13/cobra",
	"github.com/spf13/pflag",
	"github.com/olekukonko/tablewriter",
	"github.com/schollz/progressbar",
	"github.com/charmbracelet",
	"github.com/muesli/termenv",
	"golang.org/x/term",
}

// provider is what every provider of RDMA may import: the interface, capture
// points, the defence against floods, how long to poll, and queues.
var provider = []string{
	"replay/verbs", "replay/verbs/tap",
	"replay/internal/busy", "replay/internal/halfopen", "internal/backlog", "replay/internal/link", "internal/ring", "replay/internal/unguessable",
}

var rules = []rule{
	// What all may use, and what stands on nothing: how files are written, which
	// characters may be shown, which name was meant.
	{packages: "internal/outfile", foreign: []string{"golang.org/x/sys"}},
	{packages: "internal/printable"},
	{packages: "internal/digits"},
	// Numbers for people.
	{packages: "internal/units", own: []string{"internal/digits"}},
	// Memory to files and back: of a state it knows no part.
	{packages: "internal/snapshot", foreign: []string{"github.com/klauspost/compress"}},
	{packages: "internal/nearest"},
	{packages: "internal/heap"},
	// Tables for people. It is the one way to a library that draws for those who are
	// no command, and for commands and benchmarks only.
	{packages: "internal/table", foreign: []string{"github.com/olekukonko/tablewriter"}},

	// Packets. Whatever reads or writes captures needs no protocol.
	{packages: "capture/...", own: []string{"capture/...", "internal/heap", "internal/outfile"}, foreign: []string{"github.com/klauspost/compress", "golang.org/x/sys", "golang.org/x/net/bpf"}},

	// Vocabulary and tools that all of decode shares.
	{packages: "decode/internal/prefetch"},
	{packages: "decode/internal/wire"},
	{packages: "decode/memory", own: []string{"internal/snapshot"}},
	{packages: "decode/rdma", own: []string{"internal/snapshot"}},
	{packages: "decode/xdr"},
	{packages: "decode/link", own: []string{"capture", "internal/snapshot"}},
	{packages: "decode/duplicates", own: []string{"capture", "decode/internal/wire", "decode/link"}, tests: []string{"internal/testtools/wrap"}},
	{packages: "decode/tcp", own: []string{"decode/rdma", "internal/snapshot"}},

	// Fabrics: packets to operations. They know no RPC.
	{packages: "decode/ibcm", own: []string{"decode/internal/wire", "decode/rdma"}},
	{packages: "decode/roce", own: []string{"capture", "decode/ibcm", "decode/internal/wire", "decode/link", "decode/memory", "decode/rdma", "internal/snapshot"}, foreign: []string{"golang.org/x/sys"}},
	{packages: "decode/iwarp", own: []string{"decode/link", "decode/rdma", "decode/tcp", "internal/snapshot"}},

	// Messages. They know no fabric; oncrpc finds records in TCP streams.
	{packages: "decode/rpcrdma", own: []string{"decode/xdr"}},
	{packages: "decode/oncrpc", own: []string{"decode/link", "decode/rdma", "decode/tcp", "decode/xdr", "internal/snapshot"}},
	// What is known of operations stands on their codecs.
	{packages: "decode/nfs/ops", own: []string{
		"decode/nfs/mount", "decode/nfs/nfs2", "decode/nfs/nfs3", "decode/nfs/nfs4", "decode/nfs/nfsacl", "decode/nfs/nlm", "decode/nfs/nsm",
		"decode/nfs/rpcbind", "decode/xdr",
	}},
	{packages: "decode/nfs/...", own: []string{"decode/nfs/...", "decode/xdr"}},

	// Operations to transactions, and what these say.
	{packages: "decode/transaction", own: []string{"decode/internal/prefetch", "decode/internal/wire", "decode/memory", "decode/rdma", "decode/rpcrdma", "internal/snapshot"}},
	{packages: "decode/rpc", own: []string{
		"decode/internal/wire", "decode/link", "decode/nfs/...", "decode/oncrpc", "decode/rdma", "decode/rpcrdma", "decode/transaction", "decode/xdr", "internal/snapshot",
	}},

	// Kerberos, apart from rpc, which knows it by an interface: programs that do
	// not need it do not contain it.
	{packages: "decode/krb5", own: []string{"decode/oncrpc", "decode/rdma", "decode/rpc", "decode/transaction", "decode/xdr"}, foreign: []string{
		"github.com/jcmturner/gokrb5/v8/crypto", "github.com/jcmturner/gokrb5/v8/keytab", "golang.org/x/crypto",
	}},

	// For users of gopacket.
	{packages: "decode/layers", own: []string{"decode/..."}, foreign: []string{"github.com/google/gopacket"}},

	// The pipeline. It decodes no NFS: consumers do, if they want to.
	{packages: "decode", own: []string{
		"capture", "decode/ibcm", "decode/internal/prefetch", "decode/internal/wire", "decode/iwarp", "decode/link", "decode/memory", "decode/oncrpc", "decode/rdma", "decode/roce",
		"decode/rpcrdma", "decode/tcp", "decode/traced", "decode/transaction", "internal/heap", "internal/snapshot",
	}},
	// It takes the events of kernels, which call procedures by their names.
	{packages: "decode/traced", own: []string{"capture/ftrace", "decode/nfs", "decode/nfs/nfs4", "decode/rdma", "decode/rpcrdma", "decode/transaction"}, tests: []string{"capture", "decode", "decode/rpc", "internal/testtools/truth"}},
	{packages: "decode/...", own: []string{"capture", "decode/...", "internal/heap", "internal/snapshot"}},

	// What the kernel wrote. The truth reads it with these, so they stand on
	// nothing.
	{packages: "analyze/kernel/mountstats"},
	{packages: "analyze/kernel/nfsproc"},

	// What RDMA itself does, whatever the layer above: of the others it takes
	// histograms and forms of output. Only its tests know transactions, which the
	// linter sees to.
	{packages: "analyze/fabric", own: []string{"analyze/latency", "analyze/ndjson", "analyze/text", "decode/...", "internal/snapshot", "internal/units"}},

	// What the time of transactions was lost to: RDMA, laid over phases.
	{packages: "analyze/adapter", own: []string{"decode", "decode/rdma", "internal/units"}},
	{packages: "analyze/blame", own: []string{"analyze/fabric", "decode/rdma", "decode/transaction"}},
	// Sessions and layouts: what NFSv4.1 says of itself.
	{packages: "analyze/session", own: []string{"analyze/state", "decode/...", "internal/snapshot"}},

	// Why a mount is slow.
	{packages: "analyze/diagnosis", own: []string{"analyze/adapter", "analyze/blame", "analyze/compound", "analyze/fabric", "analyze/latency", "analyze/session", "analyze/state", "analyze/text", "capture", "decode/...", "internal/snapshot", "internal/units"}, tests: []string{"capture/ftrace"}},

	// Charts and tables know nothing of what they show.
	{packages: "analyze/plot"},
	{packages: "analyze/window", own: []string{"capture"}},

	// What rows of COMPOUNDs have in common, for those who write them.
	{packages: "analyze/compound", own: []string{"decode/rpc", "decode/xdr"}},
	// The words that all consumers of transactions share, and transactions as text.
	{packages: "analyze/text", own: []string{"analyze/compound", "capture", "decode/...", "internal/digits", "internal/printable", "internal/snapshot", "internal/units"}, foreign: []string{"github.com/mattn/go-runewidth"}},
	{packages: "analyze/account", own: []string{"analyze/text", "decode", "decode/rdma"}},
	// The list of connections, of one tap or of many, with its forms of output.
	{packages: "analyze/connections", own: []string{
		"analyze/account", "analyze/fabric", "analyze/ndjson", "analyze/stack", "analyze/state", "analyze/text", "capture",
		"decode", "decode/link", "decode/rdma", "decode/roce", "decode/rpcrdma", "decode/transaction",
		"internal/heap", "internal/snapshot", "internal/printable", "internal/table", "internal/units",
	}},
	// The table of a transaction's attributes, which formats and filters take them from.
	{packages: "analyze/fields", own: []string{"decode/link", "decode/nfs/...", "decode/oncrpc", "decode/rdma", "decode/rpc", "decode/rpcrdma", "decode/transaction", "decode/xdr", "internal/digits"}},
	{packages: "analyze/filter", own: []string{"analyze/fields", "decode/link", "decode/nfs/...", "decode/oncrpc", "decode/rdma", "decode/rpc", "decode/rpcrdma", "decode/transaction", "decode/xdr", "internal/nearest"}},

	// What computes something of many transactions knows no format.
	// Replies of NFS by themselves, for captures and replays.
	{packages: "analyze/invariant", own: []string{"decode/nfs/...", "decode/xdr"}},
	// Implementations, by their setup and credits.
	{packages: "analyze/stack", own: []string{"decode/rdma"}},
	{packages: "analyze/check", own: []string{"analyze/invariant", "analyze/stack", "analyze/state", "capture", "analyze/text", "decode/...", "internal/snapshot", "internal/units"}},
	{packages: "analyze/kernel", own: []string{"analyze/kernel/...", "analyze/text", "capture", "capture/ftrace", "decode/rdma", "decode/rpc", "decode/transaction", "internal/units"}},
	// Keys of connections, and the form in which analyzers save what they found.
	{packages: "analyze/state", own: []string{"decode/rdma"}, foreign: []string{"github.com/klauspost/compress"}},
	{packages: "analyze/latency", own: []string{
		"analyze/account", "analyze/compound", "analyze/state", "analyze/text", "decode", "decode/link", "decode/rdma", "decode/rpc", "decode/rpcrdma", "decode/transaction",
		"internal/heap", "internal/snapshot", "internal/units",
	}},
	// All of it from one decoder.
	{packages: "analyze/onepass", own: []string{
		"analyze/blame", "analyze/check", "analyze/connections", "analyze/diagnosis", "analyze/filter", "analyze/latency", "analyze/session", "analyze/state", "capture", "decode/...", "internal/snapshot",
	}},
	{packages: "analyze/monitor", own: []string{"analyze/adapter", "analyze/diagnosis", "analyze/fabric", "analyze/filter", "analyze/ladder", "analyze/latency", "analyze/session", "analyze/text", "capture", "decode/...", "internal/heap", "internal/units"}},

	// Formats of single transactions, and of what others computed.
	{packages: "analyze/text/results", own: []string{"analyze/check", "analyze/diagnosis", "analyze/kernel", "analyze/latency", "analyze/session", "analyze/text", "decode/...", "internal/printable", "internal/table", "internal/units"}},
	{packages: "analyze/ndjson", own: []string{"analyze/check", "analyze/compound", "analyze/fields", "analyze/text", "decode/...", "internal/digits", "internal/printable"}},
	{packages: "analyze/html", own: []string{"analyze/diagnosis", "analyze/fabric", "analyze/latency", "analyze/plot", "analyze/session", "analyze/text", "decode/rdma", "decode/transaction", "internal/printable", "internal/units"}},
	{packages: "analyze/journal", own: []string{"analyze/fields", "analyze/filter", "analyze/text", "decode/rpc", "decode/transaction", "internal/printable"}},
	{packages: "analyze/index", own: []string{"capture", "decode", "decode/transaction"}, foreign: []string{"github.com/klauspost/compress"}, tests: []string{"decode/rpc"}},
	{packages: "analyze/ladder", own: []string{"analyze/ndjson", "analyze/text", "decode/...", "internal/units"}},
	{packages: "analyze/chrometrace", own: []string{"analyze/fields", "analyze/ndjson", "analyze/text", "decode/...", "internal/digits", "internal/heap"}},
	{packages: "analyze/parquet", own: []string{"analyze/compound", "analyze/fabric", "analyze/fields", "analyze/parquet/column", "decode/...", "internal/outfile", "internal/printable"}, foreign: []string{"github.com/klauspost/compress", "github.com/parquet-go/parquet-go"}},
	{packages: "analyze/parquet/column", own: []string{"internal/digits"}, foreign: []string{"github.com/parquet-go/parquet-go"}},

	// Captures and files made of captures.
	{packages: "analyze/annotate", own: []string{"analyze/ladder", "analyze/text", "analyze/window", "capture", "decode", "decode/nfs", "decode/rpc", "decode/transaction", "internal/units"}},
	{packages: "analyze/scrub", own: []string{"analyze/adapter", "analyze/window", "capture", "capture/ftrace", "decode", "decode/ibcm", "decode/iwarp", "decode/link", "decode/nfs", "decode/nfs/nfs4", "decode/oncrpc", "decode/rdma", "decode/roce", "decode/rpc", "decode/rpcrdma", "decode/transaction", "decode/xdr"}, tests: []string{"analyze/fields"}},
	{packages: "analyze/split", own: []string{"analyze/window", "capture", "decode", "decode/iwarp", "decode/link", "decode/rdma", "decode/roce", "decode/rpc", "decode/tcp", "decode/transaction"}},
	{packages: "analyze/extract", own: []string{
		"decode/nfs/...", "decode/rpc", "decode/transaction", "decode/xdr", "internal/outfile", "internal/printable",
	}, tests: []string{"decode/..."}},

	// What may be sent is decided by its bytes: the guard knows no plan.
	{packages: "replay/guard", own: []string{"decode/nfs/...", "decode/oncrpc", "decode/xdr", "replay/transport"}},

	// The file of a plan knows neither captures nor who replays them; the planner
	// knows captures, and nothing of a replay.
	{packages: "replay/plan", own: []string{"decode/xdr", "replay/transport", "internal/printable"}, foreign: []string{"github.com/klauspost/compress"}},
	{packages: "replay/planner/order", own: []string{"replay/plan"}},
	{packages: "replay/planner", own: []string{
		"capture", "decode", "decode/nfs/...", "decode/oncrpc", "decode/rdma", "decode/rpc", "decode/rpcrdma", "decode/transaction", "decode/xdr",
		"replay/plan", "replay/planner/order", "internal/outfile",
	}, foreign: []string{"github.com/klauspost/compress"}},

	// A replay. What is known before a server is asked: the plan in memory, when its
	// calls may go, and the words in which a comparison is told.
	{packages: "replay/workload", own: []string{"decode/nfs", "decode/nfs/nfs4", "decode/nfs/ops", "decode/xdr", "replay/plan", "internal/units"}},
	{packages: "replay/internal/schedule", own: []string{"decode/nfs/ops", "replay/plan"}, tests: []string{"decode/nfs/nfs4"}},
	{packages: "replay/judge/verdict"},
	// What is known of one server; how its replies compare; what is told in the end.
	// None of these sends anything.
	{packages: "replay/internal/bindings", own: []string{"decode/nfs/...", "decode/xdr", "replay/plan", "replay/judge/verdict", "replay/workload"}},
	{packages: "replay/expected", own: []string{"decode/nfs/...", "decode/xdr", "replay/plan", "replay/judge/verdict", "replay/workload"}},
	{packages: "replay/judge", own: []string{"analyze/invariant", "decode/nfs/...", "decode/oncrpc", "decode/xdr", "replay/expected", "replay/plan", "replay/judge/verdict", "replay/workload"}},
	{packages: "replay/report", foreign: []string{"github.com/parquet-go/parquet-go"}, own: []string{"analyze/html", "analyze/latency", "capture", "decode", "decode/nfs/...", "decode/rpc", "decode/transaction", "replay/plan", "replay/transport", "replay/judge/verdict", "internal/units"}},
	// What talks to the server: the files, its calls back, and the loop that joins all.
	{packages: "replay/internal/alarm", foreign: []string{"golang.org/x/sys"}},
	{packages: "replay/internal/callback", own: []string{"decode/nfs/nfs4", "decode/oncrpc", "decode/xdr", "replay/tcprpc", "replay/transport"}},
	{packages: "replay/internal/prepare", own: []string{
		"decode/nfs/...", "decode/xdr", "replay/client", "replay/guard", "replay/internal/bindings", "replay/plan", "replay/report", "replay/workload",
	}},
	{packages: "replay/internal/readback", own: []string{
		"decode/nfs/nfs3", "decode/nfs/nfs4", "decode/nfs/nfsacl", "decode/xdr", "replay/client", "replay/internal/bindings", "replay/expected", "replay/plan", "replay/report", "replay/judge/verdict", "replay/workload",
	}},
	{packages: "replay/run", own: []string{
		"decode/nfs/...", "decode/oncrpc", "decode/xdr", "replay/client", "replay/guard", "replay/internal/alarm", "replay/internal/callback",
		"replay/internal/prepare", "replay/internal/readback", "replay/internal/schedule", "replay/internal/bindings", "replay/judge", "replay/expected", "replay/plan", "replay/report",
		"replay/transport", "replay/judge/verdict", "replay/workload",
	}, tests: []string{"decode", "decode/rpc", "decode/transaction"}}, // tests make plans of captures

	// Defence against floods, and what transports share: none knows a protocol.
	{packages: "replay/internal/unguessable"},
	{packages: "replay/internal/halfopen"},
	{packages: "replay/internal/busy"},
	{packages: "replay/internal/deadline"},
	{packages: "replay/internal/arena"},
	{packages: "internal/ring"},
	{packages: "internal/backlog", own: []string{"replay/verbs"}},
	{packages: "replay/internal/link", own: []string{"replay/verbs"}, foreign: []string{"golang.org/x/sys"}},

	// Providers of RDMA. One knows the interface, capture points, and the codecs of its own fabric; it knows
	// no RPC, and no other provider. A new one that has codecs gets its own row. The C libraries of RDMA stay
	// behind one of them.
	{packages: "replay/verbs"},
	{packages: "replay/verbs/tap", own: []string{"capture", "replay/verbs"}},
	{packages: "internal/testtools/verbstest", own: []string{"replay/verbs"}, foreign: []string{"golang.org/x/sys"}},
	{packages: "internal/testtools/loop", own: provider},
	{packages: "replay/verbs/auto", own: []string{"replay/verbs", "replay/verbs/iwarp", "replay/verbs/rdma", "replay/verbs/rocev2"}},
	{packages: "replay/verbs/iwarp", own: append([]string{"decode/iwarp"}, provider...), foreign: []string{"golang.org/x/sys"}, tests: []string{"decode/..."}},
	{packages: "replay/verbs/rocev2", own: append([]string{"decode/ibcm", "decode/roce"}, provider...), foreign: []string{"golang.org/x/sys"}, tests: []string{"decode/..."}},
	{packages: "replay/verbs/rdma", own: append([]string{"replay/internal/arena"}, provider...), cgo: true},
	{packages: "replay/verbs/...", own: provider},

	// How RPC messages travel. Transports know the RPC header and no program.
	{packages: "replay/transport", own: []string{"decode/xdr", "replay/internal/halfopen"}},
	{packages: "replay/transport/budget", own: []string{"replay/internal/halfopen"}},
	{packages: "replay/endpoint", own: []string{
		"decode/oncrpc", "decode/rdma", "decode/rpcrdma",
		"replay/internal/deadline", "internal/onclose", "internal/ring", "replay/transport", "replay/transport/budget", "replay/verbs",
	}, tests: []string{"decode/...", "analyze/check"}},
	{packages: "replay/tcprpc", own: []string{
		"decode/oncrpc", "replay/internal/deadline", "replay/internal/link", "internal/onclose", "replay/transport", "replay/transport/budget", "replay/verbs", "replay/verbs/tap",
	}, tests: []string{"decode/..."}},
	{packages: "replay/udprpc", own: []string{"decode/oncrpc", "replay/transport", "replay/verbs", "replay/verbs/tap"}, tests: []string{"decode/..."}},
	{packages: "replay/portmap", own: []string{"decode/nfs/rpcbind", "decode/oncrpc", "decode/xdr", "replay/transport"}},
	{packages: "replay/fault", own: []string{"replay/transport", "replay/verbs"}, tests: []string{"decode/xdr"}},

	// Kerberos, between transports and those who make and answer calls: they see plain
	// calls. Tickets are got elsewhere.
	{packages: "replay/gss", own: []string{"decode/krb5", "decode/oncrpc", "decode/rpc", "decode/xdr", "internal/ring", "replay/transport"}, tests: []string{"decode/nfs/nfs4"}},
	{packages: "replay/gss/accept", own: []string{"decode/krb5", "decode/oncrpc", "decode/rpc", "decode/xdr", "replay/transport"}, tests: []string{"decode", "decode/transaction"}},
	{packages: "replay/gss/login", own: []string{"decode/krb5"}, foreign: []string{"github.com/jcmturner/gokrb5/v8/config", "golang.org/x/crypto"}},

	// Helpers of tests.
	{packages: "internal/testtools/krbtest", own: []string{"decode/krb5"}, foreign: []string{"github.com/jcmturner/gokrb5/v8"}},
	{packages: "internal/testtools/rpctest", own: []string{"decode/oncrpc", "decode/xdr", "replay/transport"}},
	{packages: "internal/testtools/nfstest", own: []string{"decode/nfs/mount", "decode/nfs/nfs3", "decode/oncrpc", "decode/xdr", "replay/client", "internal/onclose", "replay/transport"}},

	// The server: stores know no NFS, protocols know no transport but its interface.
	{packages: "replay/nfsserver", own: []string{"decode/oncrpc", "decode/xdr", "replay/nfsserver/store", "replay/transport"}},
	{packages: "replay/nfsserver/store"},
	{packages: "replay/nfsserver/store/...", own: []string{"replay/nfsserver/store"}, foreign: []string{"golang.org/x/sys"}},
	{packages: "replay/nfsserver/mountd", own: []string{"decode/nfs/mount", "decode/oncrpc", "replay/nfsserver", "replay/nfsserver/store"}},
	{packages: "replay/nfsserver/v3", own: []string{"decode/nfs/nfs3", "decode/oncrpc", "decode/xdr", "replay/nfsserver", "replay/nfsserver/store"}, tests: []string{"decode/nfs/mount"}},
	{packages: "replay/nfsserver/nfsacl", own: []string{
		"decode/nfs/nfs3", "decode/nfs/nfsacl", "decode/oncrpc", "replay/nfsserver", "replay/nfsserver/store", "replay/nfsserver/v3",
	}, tests: []string{"decode/xdr"}},
	{packages: "replay/nfsserver/nfs4/state", own: []string{"decode/nfs/nfs4", "replay/nfsserver/store"}},
	{packages: "replay/nfsserver/nlm", own: []string{
		"decode/nfs/nlm", "decode/nfs/nsm", "decode/oncrpc", "decode/xdr", "replay/nfsserver", "replay/nfsserver/nfs4/state", "replay/nfsserver/store", "replay/portmap", "replay/transport",
	}, tests: []string{"decode/nfs/nfs4", "decode/nfs/rpcbind"}},
	{packages: "replay/nfsserver/portmapd", own: []string{"decode/nfs/rpcbind", "decode/oncrpc", "decode/xdr", "replay/nfsserver", "replay/portmap"}},
	{packages: "replay/nfsserver/stable", own: []string{"replay/nfsserver/nfs4/state", "replay/nfsserver/nlm", "replay/nfsserver/store"}, foreign: []string{"golang.org/x/sys"}},
	{packages: "replay/nfsserver/nfs4/backchannel", own: []string{
		"decode/nfs/nfs4", "decode/oncrpc", "decode/xdr", "replay/nfsserver/nfs4/state", "replay/transport",
	}},
	{packages: "replay/nfsserver/nfs4", own: []string{
		"decode/nfs/nfs4", "decode/oncrpc", "decode/xdr", "replay/nfsserver", "replay/nfsserver/nfs4/backchannel", "replay/nfsserver/nfs4/state", "replay/nfsserver/store", "replay/transport",
	}, tests: []string{"decode/..."}},
	{packages: "replay/nfsserver/playback", own: []string{
		"capture", "decode", "decode/nfs", "decode/nfs/nfs4", "decode/oncrpc", "decode/rpc", "decode/rpcrdma", "decode/transaction", "decode/xdr", "replay/transport",
	}},

	// Clients, measurements, and how commands put servers and fabrics together.
	{packages: "replay/client", own: []string{
		"decode/nfs/mount", "decode/nfs/nfs3", "decode/nfs/nfs4", "decode/nfs/nfsacl", "decode/nfs/ops", "decode/oncrpc", "decode/xdr", "replay/transport",
	}},
	{packages: "replay/bench", own: []string{"analyze/plot", "internal/table", "internal/units", "replay/client", "replay/endpoint", "replay/verbs"}, foreign: []string{"golang.org/x/sys"}},
	{packages: "replay/providers", own: []string{
		"decode/nfs/nlm", "decode/nfs/nsm", "decode/nfs/rpcbind", "decode/oncrpc",
		"replay/client", "replay/endpoint", "replay/gss/accept", "replay/nfsserver/...", "replay/portmap", "replay/tcprpc", "replay/transport", "replay/transport/budget", "replay/udprpc",
		"replay/verbs", "replay/verbs/iwarp", "replay/verbs/rdma", "replay/verbs/rocev2",
	}, tests: []string{"decode/nfs/nfs4", "decode/xdr"}},

	// What keeps a program from doing harm knows nothing of what it does.
	{packages: "cmd/internal/sandbox", foreign: []string{
		"github.com/landlock-lsm/go-landlock", "github.com/seccomp/libseccomp-golang", "kernel.org/pub/linux/libs/security/libcap/cap",
		"golang.org/x/sys", "github.com/spf13/pflag",
	}},
	// What the commands share knows none of them.
	{packages: "cmd/internal/cli", own: []string{"analyze/filter", "analyze/text", "capture/...", "decode", "decode/duplicates", "decode/krb5", "decode/rpc", "decode/transaction", "internal/nearest", "internal/outfile", "internal/printable", "internal/table", "internal/units"}, foreign: []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term",
	}},
	{packages: "cmd/internal/metrics", own: []string{"cmd/internal/cli"}, foreign: []string{"github.com/prometheus/client_golang"}},
	{packages: "cmd/internal/settings", own: []string{"cmd/internal/cli", "internal/nearest"}, foreign: []string{"github.com/pelletier/go-toml/v2"}},
	{packages: "cmd/internal/show", own: []string{"analyze/check", "analyze/ndjson", "analyze/text/results", "internal/printable"}},
	{packages: "internal/testtools/programs"},
	{packages: "internal/testtools/helppage", foreign: []string{"github.com/spf13/cobra"}},
	{packages: "internal/testtools/clitest", own: []string{"capture", "decode/link", "decode/roce", "internal/testtools/wrap"}, foreign: []string{"github.com/klauspost/compress/zstd", "github.com/rogpeppe/go-internal/testscript", "github.com/spf13/cobra", "github.com/spf13/pflag"}},
	// Commands: flags, files, terminals.
	{packages: "cmd/rpcrdma-dump", own: []string{"analyze/...", "capture/...", "cmd/internal/...", "decode/...", "internal/outfile", "internal/printable", "internal/table", "internal/units"}, foreign: []string{
		"github.com/klauspost/compress", "github.com/schollz/progressbar", "github.com/spf13/cobra", "github.com/spf13/pflag",
	}},
	{packages: "cmd/rpcrdma-replay", own: []string{"analyze/latency", "analyze/text", "capture/...", "cmd/internal/...", "decode/...", "replay/...", "internal/nearest", "internal/outfile", "internal/printable", "internal/table"}, foreign: []string{
		"github.com/spf13/cobra", "github.com/spf13/pflag",
	}},
	{packages: "cmd/rpcrdma-top", own: []string{"analyze/...", "capture/...", "cmd/internal/...", "decode/...", "internal/nearest", "internal/outfile", "internal/printable", "internal/table", "internal/units"}, foreign: []string{
		"github.com/aymanbagabas/go-osc52/v2", "github.com/charmbracelet", "github.com/mattn/go-runewidth", "github.com/muesli/termenv", "github.com/prometheus/client_golang", "github.com/spf13/cobra", "github.com/spf13/pflag",
	}},

	// The generator writes what decode is made of, so it stands on nothing.
	{packages: "internal/xdrgen"},
	{packages: "internal/xdrgen/...", own: []string{"decode/xdr"}},
	// The truth must not share a mistake with what it is compared with.
	{packages: "internal/testtools/truth/...", own: []string{"internal/testtools/truth/...", "capture/ftrace", "analyze/kernel/mountstats", "analyze/kernel/nfsproc"}, foreign: []string{"github.com/klauspost/compress"}},
	{packages: "internal/arch"},
	{packages: "internal/onclose"},
	{packages: "internal/testtools/xdrtest", own: []string{"decode/xdr"}},
	{packages: "internal/testtools/storetest", own: []string{"replay/nfsserver/store"}},
	{packages: "internal/testtools/mutantstore", own: []string{"replay/nfsserver/store"}},
	{packages: "internal/testtools/floods", own: []string{"capture", "decode/...", "internal/testtools/rocetest"}},
	{packages: "internal/notices"},
	{packages: "internal/testtools/spent"},
	{packages: "internal/testtools/leak"},
	{packages: "internal/testtools/wrap/...", own: []string{"capture", "decode/link", "internal/testtools/wrap"}},
	// Mutations: of bytes; of captures; what must hold of what is decoded of them.
	{packages: "internal/testtools/mutate"},
	{packages: "internal/testtools/mutate/...", own: []string{"internal/testtools/mutate/...", "capture", "decode/..."}},
	// Hostile captures are packets and messages; it must not know who reads them.
	{packages: "internal/testtools/hostile", own: []string{"capture", "decode/..."}},
	{packages: "internal/testtools/hostile/...", own: []string{"internal/testtools/hostile"}},
	{packages: "internal/testtools/fleetgen", own: []string{"capture", "decode/link", "decode/roce"}, foreign: []string{"github.com/klauspost/compress"}, tests: []string{"decode/..."}},
	{packages: "internal/testtools/fleetgen/...", own: []string{"internal/testtools/fleetgen"}},
	{packages: "internal/testtools/longplan", own: []string{"decode/nfs/nfs3", "decode/nfs/nfs4", "replay/plan"}},
	// The simulator must not share a mistake with the decoder of transactions.
	{packages: "internal/testtools/simulate", own: []string{"capture", "decode/ibcm", "decode/iwarp", "decode/link", "decode/nfs/nfs3", "decode/nfs/nfs4", "decode/oncrpc", "decode/rdma", "decode/roce", "decode/rpcrdma", "decode/xdr"}, tests: []string{"decode", "decode/transaction"}},
	{packages: "internal/...", own: []string{"capture", "decode/...", "analyze/..."}},
	// The pictures of the documentation.
	{packages: "docs/images/..."},
	{packages: "examples/...", own: []string{"capture", "decode/...", "analyze/..."}, foreign: []string{"*"}},
	{packages: "test/...", own: []string{"..."}, foreign: append([]string{"*"}, ui...)},
}

// TestImports checks every Go file of the module, for all platforms, against
// the rules. Test files may also import what lies in the same top folder,
// package capture, the helpers below internal and any module of others, since
// none of that reaches a program; those of analyze also decode, which makes the
// transactions for them. What lies above stays out of their reach.
func TestImports(t *testing.T) {
	module := modulePath(t)
	checked := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || name != root && (strings.HasPrefix(base, ".") || otherModule(name)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		dir, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		pkg := clean(filepath.ToSlash(dir))
		i := find(pkg)
		if i < 0 {
			t.Errorf("%s: no rule for this package; add one to the table of this test", pkg)
			return fs.SkipDir
		}
		checked++
		imports, err := importsOf(name)
		if err != nil {
			return err
		}
		for _, p := range imports {
			if why := rules[i].refuses(pkg, module, p, strings.HasSuffix(name, "_test.go")); why != "" {
				t.Errorf("%s/%s imports %q: %s", pkg, d.Name(), p, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 100 {
		t.Errorf("only %d files found", checked)
	}
}

// otherModule tells whether a directory is the root of another module, such as release, of which nothing reaches a
// program.
func otherModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// TestRules makes sure that the rules refuse what they are there to refuse.
func TestRules(t *testing.T) {
	const module = "example.org/m"
	cases := []struct {
		pkg, path string
		test      bool
		want      bool // allowed
	}{
		{"capture", "io", false, true},
		{"capture", module + "/decode/link", false, false},
		{"capture", "github.com/klauspost/compress/zstd", false, true},
		{"capture", "github.com/google/gopacket/pcapgo", false, false},
		{"capture", "github.com/google/gopacket/pcapgo", true, true},
		{"decode", module + "/analyze/text", false, false},
		{"decode", module + "/analyze/text", true, false},
		{"decode", module + "/capture", false, true},
		{"decode", module + "/decode/rpc", false, false},
		{"decode", module + "/decode/rpc", true, true},
		{"decode", module + "/decode/nfs/nfs4", false, false},
		{"decode/nfs/nfs4", module + "/decode/xdr", false, true},
		{"decode/nfs/nfs4", module + "/internal/xdrgen/xdrtest", true, true},
		{"decode/nfs/nfs4", module + "/internal/xdrgen/xdrtest", false, false},
		{"decode/rpcrdma", module + "/decode/roce", false, false},
		{"decode/roce", module + "/decode/rpcrdma", false, false},
		{"decode/oncrpc", module + "/decode/iwarp", false, false},
		{"decode/new", module + "/decode/xdr", false, true},
		{"decode/new", "C", false, false},
		{"decode/new", "github.com/charmbracelet/lipgloss", false, false},
		{"analyze/text", "github.com/mattn/go-runewidth", false, true},
		{"analyze/text", "github.com/spf13/cobra", false, false},
		{"analyze/text", "golang.org/x/term", false, false},
		{"analyze/text", module + "/cmd/rpcrdma-dump", false, false},
		{"internal/table", "github.com/olekukonko/tablewriter/tw", false, true},
		{"analyze/text/results", "github.com/olekukonko/tablewriter", false, false},
		{"analyze/check", module + "/analyze/ndjson", false, false},
		{"analyze/latency", module + "/analyze/html", false, false},
		{"analyze/ndjson", module + "/analyze/check", false, true},
		{"cmd/rpcrdma-dump", "github.com/spf13/cobra", false, true},
		{"cmd/rpcrdma-dump", "github.com/olekukonko/tablewriter", false, false},
		{"cmd/rpcrdma-dump", module + "/replay/plan", false, false},
		{"cmd/internal/cli", module + "/replay/plan", false, false},
		{"cmd/rpcrdma-dump", "C", false, false},
		{"cmd/internal/sandbox", module + "/capture", false, false},
		{"cmd/internal/sandbox", "kernel.org/pub/linux/libs/security/libcap/cap", false, true},
		{"analyze/plot", module + "/analyze/latency", false, false},
		{"cmd/rpcrdma-dump", module + "/internal/truth", false, false},
		{"internal/testtools/truth", module + "/decode/rpcrdma", false, false},
		{"replay/verbs/rdma", "C", false, true},
		{"replay/verbs/rocev2", "C", false, false},
		{"replay/verbs/rocev2", module + "/decode/roce", false, true},
		{"replay/verbs/rocev2", module + "/decode/iwarp", false, false},
		{"replay/verbs/rocev2", module + "/decode", false, false},
		{"replay/verbs/rocev2", module + "/decode", true, true},
		{"replay/verbs/iwarp", module + "/replay/run", false, false},
		{"replay/verbs/iwarp", module + "/replay/verbs/rocev2", false, false},
		{"replay/verbs/new", module + "/replay/verbs/tap", false, true},
		{"replay/verbs/new", module + "/decode/roce", false, false},
		{"replay/verbs/new", module + "/replay/endpoint", false, false},
		{"replay/endpoint", module + "/replay/verbs/rocev2", false, false},
		{"replay/endpoint", module + "/replay/verbs/rocev2", true, true},
		{"replay/endpoint", module + "/analyze/check", false, false},
		{"replay/endpoint", module + "/analyze/check", true, true},
		{"replay/endpoint", module + "/analyze/text", true, false},
		{"replay/tcprpc", module + "/replay/endpoint", false, false},
		{"replay/nfsserver", module + "/replay/endpoint", false, false},
		{"replay/nfsserver/store/memory", module + "/decode/nfs/nfs4", false, false},
		{"replay/nfsserver/v3", module + "/replay/nfsserver/nfs4", false, false},
		{"replay/guard", module + "/decode/nfs/ops", false, true},
		{"replay/guard", module + "/replay/plan", false, false},
		{"replay/guard", module + "/replay/run", false, false},
		{"decode/nfs/ops", module + "/decode/nfs", false, false},
		{"replay/plan", module + "/decode/rpc", false, false},
		{"replay/plan", module + "/replay/planner", false, false},
		{"replay/plan", module + "/decode/nfs/ops", false, false},
		{"replay/planner", module + "/decode/nfs/ops", false, true},
		{"replay/planner", module + "/replay/run", false, false},
		{"replay/internal/schedule", module + "/replay/workload", false, false},
		{"replay/internal/schedule", module + "/replay/transport", false, false},
		{"replay/internal/bindings", module + "/replay/judge", false, false},
		{"replay/internal/bindings", module + "/replay/client", false, false},
		{"replay/judge/verdict", module + "/replay/plan", false, false},
		{"replay/judge", module + "/replay/internal/world", false, false},
		{"replay/judge", module + "/replay/report", false, false},
		{"replay/report", module + "/replay/judge", false, false},
		{"replay/report", "github.com/olekukonko/tablewriter", false, false},
		{"replay/run", module + "/replay/judge", false, true},
		{"replay/run", module + "/decode", false, false},
		{"replay/run", module + "/decode", true, true},
		{"replay/run", module + "/replay/endpoint", false, false},
		{"replay/providers", module + "/replay/run", false, false},
		{"analyze/extract", module + "/analyze/text", false, false},
		{"test/truth", module + "/internal/truth", true, true},
	}
	for _, c := range cases {
		i := find(c.pkg)
		if i < 0 {
			t.Errorf("%s: no rule", c.pkg)
			continue
		}
		if why := rules[i].refuses(c.pkg, module, c.path, c.test); (why == "") != c.want {
			t.Errorf("%s imports %s (test file: %v): allowed %v, want %v", c.pkg, c.path, c.test, why == "", c.want)
		}
	}
	// New packages of these need a row of their own.
	for _, pkg := range []string{"stray", "analyze/stray", "cmd/stray", "cmd/internal/stray", "replay/stray", "replay/internal/stray"} {
		if find(pkg) >= 0 {
			t.Errorf("the package %s, which is not in the layout, has a rule", pkg)
		}
	}
}

// refuses tells why a package may not import a path; empty if it may.
func (r *rule) refuses(pkg, module, imported string, test bool) string {
	if imported == "C" {
		if r.cgo {
			return ""
		}
		return "no cgo here"
	}
	if rest, ok := strings.CutPrefix(imported, module+"/"); ok {
		for _, p := range r.own {
			if matches(p, rest) {
				return ""
			}
		}
		for _, p := range r.tests {
			if test && matches(p, rest) {
				return ""
			}
		}
		if test && (top(rest) == top(pkg) || top(rest) == "internal" || rest == "capture" || top(pkg) == "analyze" && top(rest) == "decode") {
			return ""
		}
		return fmt.Sprintf("against the direction of dependencies: %s may import %s", r.packages, list(r.own))
	}
	if standard(imported) || test {
		return ""
	}
	isUI := within(ui, imported)
	for _, p := range r.foreign {
		if p == "*" && !isUI || p != "*" && within([]string{p}, imported) {
			return ""
		}
	}
	if isUI {
		return "user interface, which belongs to cmd"
	}
	return fmt.Sprintf("%s may import of others' modules: %s", r.packages, list(r.foreign))
}

// top is the first folder of a package's path.
func top(pkg string) string {
	first, _, _ := strings.Cut(pkg, "/")
	return first
}

func list(s []string) string {
	if len(s) == 0 {
		return "nothing"
	}
	return strings.Join(s, ", ")
}

// standard reports whether an import path is of the standard library: only
// there the first element has no dot.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// within reports whether an import path is one of modules or below it.
func within(modules []string, imported string) bool {
	for _, m := range modules {
		if imported == m || strings.HasPrefix(imported, m+"/") {
			return true
		}
	}
	return false
}

func matches(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if p, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == p || strings.HasPrefix(pkg, p+"/")
	}
	return pkg == pattern
}

func find(pkg string) int {
	for i := range rules {
		if matches(rules[i].packages, pkg) {
			return i
		}
	}
	return -1
}

// clean is the folder of a package, "" for the module's root.
func clean(dir string) string {
	if dir = path.Clean(dir); dir == "." {
		return ""
	}
	return dir
}

func importsOf(name string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

func modulePath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(rest)
		}
	}
	t.Fatal("go.mod names no module")
	return ""
}
