package rdma

// serviceNames has the ports of upper layers of RDMA, of NFS and its helpers,
// and of what else a storage network carries (IANA registry).
var serviceNames = map[uint16]string{
	22: "SSH", 53: "DNS", 67: "DHCP", 80: "HTTP", 88: "Kerberos", 111: "rpcbind", 123: "NTP", 161: "SNMP", 179: "BGP", 319: "PTP",
	320: "PTP", 389: "LDAP", 443: "HTTPS", 445: "SMB", 514: "syslog", 860: "iSCSI", 987: "Lustre", 988: "Lustre", 1021: "MPI", 2049: "NFS",
	2050: "NFS/RDMA (2008)", 3205: "iSNS", 3225: "FCIP", 3260: "iSER or iSCSI", 3784: "BFD", 4420: "NVMe-oF", 4791: "RoCEv2", 5353: "mDNS", 5355: "LLMNR",
	5445: "SMB Direct", 6343: "sFlow", 7174: "rping", 8009: "NVMe-oF discovery", 18515: "perftest", 20049: "NFS/RDMA", 24007: "GlusterFS",
	24008: "GlusterFS",
}

// rdmaNames has what ports mean that connections of RDMA and of TCP use for different things: iSER
// (RFC 7145) has those of iSCSI, and SMB Direct over RoCE and InfiniBand has that of SMB (MS-SMBD, section 2.1).
var rdmaNames = map[uint16]string{445: "SMB Direct", 860: "iSER", 2049: "NFS/RDMA", 3260: "iSER"}

// ServiceOn names the service at a port of a fabric: of TCP or UDP, or of what connects queue pairs; "" if it
// has none that is known.
func ServiceOn(f Fabric, port uint16) string {
	if f != TCP && f != UDP {
		if n := rdmaNames[port]; n != "" {
			return n
		}
	}
	return ServiceName(port)
}

// ServiceName names the service at a port of RDMA's connection management, TCP
// or UDP; "" if it has none that is known.
func ServiceName(port uint16) string { return serviceNames[port] }

// CarriesRPC reports whether a port of a fabric's connection management is one of RPC-over-RDMA: of NFS (RFC 8267,
// section 6), the one in use before it was assigned, and that of NFS over TCP, which some servers use for both.
func CarriesRPC(f Fabric, port uint16) bool {
	return f != TCP && f != UDP && (port == 20049 || port == 2050 || port == 2049)
}
