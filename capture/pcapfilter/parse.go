package pcapfilter

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/bpf"
)

// Parse reads an expression. An empty one gives nil, which takes all packets.
func Parse(s string) (*Expr, error) {
	list, err := lex(s)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, nil
	}
	p := &parser{src: s, list: list}
	n, err := p.expression()
	if err == nil && p.next < len(p.list) {
		err = p.errorf("unexpected %q", p.peek())
	}
	if err != nil {
		return nil, err
	}
	return &Expr{n}, nil
}

type parser struct {
	src   string
	list  []token
	next  int
	depth int
	last  qualifiers // of the address or port before
}

// qualifiers stand before an address, a port or a number.
type qualifiers struct {
	proto, kind string
	dir         direction
}

func (p *parser) peek() string { return p.ahead(0) }

func (p *parser) ahead(n int) string {
	if p.next+n < len(p.list) {
		return p.list[p.next+n].text
	}
	return ""
}

// accept takes the next token if it is one of those given.
func (p *parser) accept(texts ...string) bool {
	if p.next < len(p.list) && slices.Contains(texts, p.list[p.next].text) {
		p.next++
		return true
	}
	return false
}

func (p *parser) errorf(format string, args ...any) error {
	pos := len(p.src)
	if p.next < len(p.list) {
		pos = p.list[p.next].pos
	}
	return &Error{p.src, pos, fmt.Sprintf(format, args...)}
}

// expression is a chain of and and or, which bind alike, from the left.
func (p *parser) expression() (node, error) {
	l, err := p.unary()
	for err == nil {
		var r node
		switch {
		case p.accept("and", "&&"):
			if r, err = p.unary(); err == nil {
				l = and{l, r}
			}
		case p.accept("or", "||"):
			if r, err = p.unary(); err == nil {
				l = or{l, r}
			}
		default:
			return l, nil
		}
	}
	return nil, err
}

// maxDepth bounds the nesting of an expression.
const maxDepth = 100

func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.errorf("nested too deep")
	}
	defer func() { p.depth-- }()
	switch {
	case p.accept("not", "!"):
		n, err := p.unary()
		return not{n}, err
	case p.accept("("):
		n, err := p.expression()
		if err == nil && !p.accept(")") {
			err = p.errorf("a closing parenthesis is missing")
		}
		return n, err
	}
	return p.primary()
}

var etherTypes = map[string]uint16{"ip": typeIPv4, "ip6": typeIPv6, "arp": typeARP, "rarp": typeRARP, "roce": typeRoCEv1}

var ipProtos = map[string]uint8{
	"tcp": protoTCP, "udp": protoUDP, "sctp": protoSCTP, "icmp": protoICMP, "icmp6": protoICMPv6, "igmp": protoIGMP,
}

func isProto(s string) bool {
	_, link := etherTypes[s]
	_, ip := ipProtos[s]
	return link || ip || s == "ether"
}

// protocol is the node for the name of a protocol.
func protocol(s string) node {
	if t, ok := etherTypes[s]; ok {
		return etherType(t)
	}
	return ipProto(ipProtos[s])
}

func (p *parser) primary() (node, error) {
	w := p.peek()
	switch {
	case w == "":
		return nil, p.errorf("the expression ends too early")
	case w == "len" || p.ahead(1) == "[":
		return p.relation()
	case w == "vlan":
		p.next++
		if n, err := strconv.ParseUint(p.peek(), 0, 16); err == nil {
			if n > 4095 {
				return nil, p.errorf("a VLAN is 0 to 4095")
			}
			p.next++
			return vlan{int(n)}, nil
		}
		return vlan{-1}, nil
	case w == "fragment":
		p.next++
		return laterFragment{}, nil
	case w == "less" || w == "greater":
		p.next++
		n, err := p.number()
		cond := bpf.JumpLessOrEqual
		if w == "greater" {
			cond = bpf.JumpGreaterOrEqual
		}
		return relation{value{of: "len"}, cond, n}, err
	}
	return p.address()
}

// address is a protocol, or qualifiers with what they go with.
func (p *parser) address() (node, error) {
	var q qualifiers
	first := p.next
	if isProto(p.peek()) {
		q.proto = p.peek()
		p.next++
	}
	directed := true
	switch src, op, dst := p.peek(), p.ahead(1), p.ahead(2); {
	case (src == "src" && dst == "dst" || src == "dst" && dst == "src") && (op == "or" || op == "and"):
		q.dir = either
		if op == "and" {
			q.dir = both
		}
		p.next += 3
	case src == "src":
		q.dir = source
		p.next++
	case src == "dst":
		q.dir = destination
		p.next++
	default:
		directed = false
	}
	if slices.Contains([]string{"host", "net", "port", "portrange", "proto", "broadcast", "multicast"}, p.peek()) {
		q.kind = p.peek()
		p.next++
	}
	switch {
	case p.next == first: // words from before go on
		q = p.last
		if q.kind == "" {
			q.kind = "host"
		}
	case q.kind == "" && directed:
		q.kind = "host"
	case q.kind == "":
		if q.proto == "ether" {
			return nil, p.errorf("ether what? host, proto, broadcast or multicast")
		}
		return protocol(q.proto), nil
	}
	n, err := p.match(q)
	if err != nil {
		return nil, err
	}
	p.last = q
	return n, nil
}

// match is what qualifiers and the id after them mean.
func (p *parser) match(q qualifiers) (node, error) {
	switch q.kind {
	case "broadcast", "multicast":
		return p.group(q)
	}
	id := p.peek()
	if id == "" || !isWord(id[0]) && id[0] != ':' {
		return nil, p.errorf("%s of what?", q.kind)
	}
	switch q.kind {
	case "host", "net":
		if q.proto == "ether" {
			return p.station(q, id)
		}
		return p.network(q, id)
	case "port", "portrange":
		return p.ports(q, id)
	}
	n, err := p.number()
	if err != nil {
		return nil, err
	}
	switch {
	case q.dir != either:
	case q.proto == "ether" && n <= 0xffff:
		return etherType(n), nil
	case q.proto == "" && n <= 0xff:
		return ipProto(n), nil
	case (q.proto == "ip" || q.proto == "ip6") && n <= 0xff:
		return and{protocol(q.proto), ipProto(n)}, nil
	}
	p.next--
	return nil, p.errorf("no such protocol: %s proto %s", q.proto, id)
}

func (p *parser) group(q qualifiers) (node, error) {
	switch {
	case q.kind == "multicast" && q.proto == "ip":
		return relation{value{of: "ip", off: 16, size: 1}, bpf.JumpGreaterOrEqual, 224}, nil
	case q.kind == "multicast" && q.proto == "ip6":
		return relation{value{of: "ip6", off: 24, size: 1}, bpf.JumpEqual, 255}, nil
	case q.proto != "" && q.proto != "ether" || q.dir != either:
		p.next--
		return nil, p.errorf("%s goes with ether, ip (multicast) and ip6 (multicast)", q.kind)
	case q.kind == "multicast":
		return group{}, nil
	}
	return station{destination, [6]byte{255, 255, 255, 255, 255, 255}}, nil
}

func (p *parser) station(q qualifiers, id string) (node, error) {
	mac, err := net.ParseMAC(id)
	if err != nil || len(mac) != 6 || q.kind != "host" {
		return nil, p.errorf("%q is not an Ethernet address", id)
	}
	p.next++
	return station{q.dir, [6]byte(mac)}, nil
}

func (p *parser) network(q qualifiers, id string) (node, error) {
	var prefix netip.Prefix
	addr, err := netip.ParseAddr(id)
	if err == nil && addr.Zone() == "" {
		prefix = netip.PrefixFrom(addr, addr.BitLen())
	} else if prefix, err = netip.ParsePrefix(id); err != nil {
		return nil, p.errorf("%q is not an IP address (names are not looked up)", id)
	}
	if prefix.Masked().Addr() != prefix.Addr() {
		return nil, p.errorf("%s has bits behind its prefix: %s?", prefix, prefix.Masked())
	}
	p.next++
	n := node(network{q.dir, prefix})
	switch q.proto {
	case "":
		return n, nil
	case "ip", "ip6", "arp", "rarp":
		return and{protocol(q.proto), n}, nil
	}
	p.next--
	return nil, p.errorf("%s has no addresses: use %s and %s %s", q.proto, q.proto, q.kind, id)
}

func (p *parser) ports(q qualifiers, id string) (node, error) {
	n := ports{dir: q.dir}
	lo, hi, isRange := strings.Cut(id, "-")
	if q.kind != "portrange" {
		lo, hi, isRange = id, id, true
	}
	var ok [2]bool
	n.lo, ok[0] = port(q.proto, lo)
	n.hi, ok[1] = port(q.proto, hi)
	if !isRange || !ok[0] || !ok[1] || n.lo > n.hi {
		return nil, p.errorf("%q is not a %s", id, q.kind)
	}
	p.next++
	switch q.proto {
	case "":
		return n, nil
	case "tcp", "udp", "sctp":
		return and{protocol(q.proto), n}, nil
	}
	p.next--
	return nil, p.errorf("%s has no ports", q.proto)
}

// port is a number or a name of /etc/services.
func port(proto, s string) (uint16, bool) {
	if n, err := strconv.ParseUint(s, 10, 16); err == nil {
		return uint16(n), true
	}
	if proto == "" {
		proto = "tcp"
	}
	if proto != "tcp" && proto != "udp" {
		return 0, false
	}
	n, err := net.LookupPort(proto, s)
	return uint16(n), err == nil
}

// relation is VALUE OPERATOR CONSTANT.
func (p *parser) relation() (node, error) {
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	conds := map[string]bpf.JumpTest{
		"=": bpf.JumpEqual, "==": bpf.JumpEqual, "!=": bpf.JumpNotEqual, "<": bpf.JumpLessThan,
		"<=": bpf.JumpLessOrEqual, ">": bpf.JumpGreaterThan, ">=": bpf.JumpGreaterOrEqual,
	}
	cond, ok := conds[p.peek()]
	if !ok {
		return nil, p.errorf("a comparison is missing: =, !=, <, <=, > or >=")
	}
	p.next++
	r, err := p.constant()
	return relation{v, cond, r}, err
}

// value is len or bytes of a header, and what is done to it.
func (p *parser) value() (v value, err error) {
	v.of = p.peek()
	p.next++
	if v.of != "len" {
		if !slices.Contains([]string{"ether", "ip", "ip6", "arp", "tcp", "udp", "sctp", "icmp", "icmp6"}, v.of) {
			p.next--
			return v, p.errorf("%q is not a header", v.of)
		}
		p.next++ // [
		if v.off, err = p.constant(); err != nil {
			return v, err
		}
		v.size = 1
		if p.accept(":") {
			n, err := p.number()
			if err != nil {
				return v, err
			}
			if n != 1 && n != 2 && n != 4 {
				return v, p.errorf("1, 2 or 4 bytes can be compared")
			}
			v.size = int(n)
		}
		if v.off > 0xffff {
			return v, p.errorf("the offset is too far")
		}
		if !p.accept("]") {
			return v, p.errorf("a ] is missing")
		}
	}
	ops := map[string]bpf.ALUOp{
		"&": bpf.ALUOpAnd, "|": bpf.ALUOpOr, "^": bpf.ALUOpXor, "+": bpf.ALUOpAdd, "-": bpf.ALUOpSub,
		"*": bpf.ALUOpMul, "/": bpf.ALUOpDiv, "<<": bpf.ALUOpShiftLeft, ">>": bpf.ALUOpShiftRight,
	}
	for {
		op, ok := ops[p.peek()]
		if !ok {
			return v, nil
		}
		p.next++
		n, err := p.operand()
		switch {
		case err != nil:
			return v, err
		case op == bpf.ALUOpDiv && n == 0, (op == bpf.ALUOpShiftLeft || op == bpf.ALUOpShiftRight) && n > 31:
			p.next--
			return v, p.errorf("%d makes no sense here", n)
		}
		v.ops = append(v.ops, bpf.ALUOpConstant{Op: op, Val: n})
	}
}

// constant is numbers, joined by | and +.
func (p *parser) constant() (uint32, error) {
	n, err := p.operand()
	for err == nil {
		var m uint32
		switch {
		case p.accept("|"):
			m, err = p.operand()
			n |= m
		case p.accept("+"):
			m, err = p.operand()
			n += m
		default:
			return n, nil
		}
	}
	return 0, err
}

func (p *parser) operand() (uint32, error) {
	if !p.accept("(") {
		return p.number()
	}
	if p.depth++; p.depth > maxDepth {
		return 0, p.errorf("nested too deep")
	}
	defer func() { p.depth-- }()
	n, err := p.constant()
	if err == nil && !p.accept(")") {
		err = p.errorf("a closing parenthesis is missing")
	}
	return n, err
}

// names of offsets and flags, as in tcpdump.
var names = map[string]uint32{
	"tcpflags": 13, "tcp-fin": 1, "tcp-syn": 2, "tcp-rst": 4, "tcp-push": 8, "tcp-ack": 16, "tcp-urg": 32,
	"tcp-ece": 64, "tcp-cwr": 128, "icmptype": 0, "icmpcode": 1, "icmp6type": 0, "icmp6code": 1,
}

func (p *parser) number() (uint32, error) {
	w := p.peek()
	if n, ok := names[w]; ok {
		p.next++
		return n, nil
	}
	n, err := strconv.ParseUint(w, 0, 32)
	if err != nil {
		return 0, p.errorf("%q is not a number", w)
	}
	p.next++
	return uint32(n), nil
}
