//go:build verbs && cgo && linux

#define _GNU_SOURCE
#include "lib.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

// The exported functions, in the types that the headers give them. The macros
// of the same names in verbs.h take arguments, so the bare names are free.
#define VERBS(f) \
	f(ibv_get_device_list) f(ibv_free_device_list) f(ibv_get_device_name) f(ibv_query_device) \
	f(ibv_alloc_pd) f(ibv_dealloc_pd) f(ibv_dereg_mr) \
	f(ibv_create_comp_channel) f(ibv_destroy_comp_channel) f(ibv_create_cq) f(ibv_destroy_cq) \
	f(ibv_get_cq_event) f(ibv_ack_cq_events) f(ibv_query_qp) f(ibv_modify_qp) \
	f(ibv_get_async_event) f(ibv_ack_async_event)
#define CM(f) \
	f(rdma_create_event_channel) f(rdma_destroy_event_channel) f(rdma_create_id) f(rdma_destroy_id) \
	f(rdma_bind_addr) f(rdma_listen) f(rdma_resolve_addr) f(rdma_resolve_route) f(rdma_create_qp) \
	f(rdma_destroy_qp) f(rdma_connect) f(rdma_accept) f(rdma_reject) f(rdma_disconnect) \
	f(rdma_get_cm_event) f(rdma_ack_cm_event) f(rdma_get_src_port) f(rdma_get_devices) f(rdma_free_devices)

static struct {
#define FIELD(name) __typeof__(name) *name;
	VERBS(FIELD) CM(FIELD)
	struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
	struct ibv_mr *(*reg_mr_iova)(struct ibv_pd *, void *, size_t, uint64_t, int);
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *, void *, size_t, uint64_t, unsigned int);
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *);
} lib;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;
static int loaded;

static void *open_lib(const char *name, char *why, size_t size)
{
	void *h = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (!h)
		snprintf(why, size, "%s", dlerror());
	return h;
}

int rc_load(char *why, size_t size)
{
	void *v, *c;
	int rc = 0;

	pthread_mutex_lock(&load_lock);
	if (loaded)
		goto out;
	rc = -ENOENT;
	if (!(v = open_lib("libibverbs.so.1", why, size)))
		goto out;
	if (!(c = open_lib("librdmacm.so.1", why, size)))
		goto out;
#define RESOLVE(handle, file, field, name) \
	if (!(*(void **)&lib.field = dlsym(handle, name))) { \
		snprintf(why, size, file " has no function %s", name); \
		goto out; \
	}
#define FROM_VERBS(name) RESOLVE(v, "libibverbs.so.1", name, #name)
#define FROM_CM(name) RESOLVE(c, "librdmacm.so.1", name, #name)
	VERBS(FROM_VERBS)
	CM(FROM_CM)
	RESOLVE(v, "libibverbs.so.1", reg_mr, "ibv_reg_mr")
	RESOLVE(v, "libibverbs.so.1", query_port, "ibv_query_port")
	// Either may be missing in old releases.
	*(void **)&lib.reg_mr_iova = dlsym(v, "ibv_reg_mr_iova");
	*(void **)&lib.reg_mr_iova2 = dlsym(v, "ibv_reg_mr_iova2");
	loaded = 1;
	rc = 0;
out:
	pthread_mutex_unlock(&load_lock);
	return rc;
}

static int fail(void) { return errno ? -errno : -EIO; }

int rc_query(struct ibv_context *ctx, struct rc_device *out)
{
	struct ibv_device_attr a;
	struct ibv_port_attr p;
	int rc;

	memset(out, 0, sizeof *out);
	out->ctx = ctx;
	snprintf(out->name, sizeof out->name, "%s", lib.ibv_get_device_name(ctx->device));
	out->transport = ctx->device->transport_type;
	memset(&a, 0, sizeof a);
	if ((rc = lib.ibv_query_device(ctx, &a)))
		return -rc;
	out->guid = a.node_guid;
	out->vendor = a.vendor_id;
	out->fw_windows = (a.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B)) != 0;
	out->max_qp_wr = a.max_qp_wr;
	out->max_sge = a.max_sge;
	out->max_sge_rd = a.max_sge_rd;
	out->max_cqe = a.max_cqe;
	out->max_rd_atom = a.max_qp_rd_atom;
	out->max_init_rd_atom = a.max_qp_init_rd_atom;
	out->max_mw = a.max_mw;
	out->max_mr = a.max_mr;
	out->ports = a.phys_port_cnt;
	// The function of this name in the library takes the short structure of
	// its first release; what lies behind it is left zero.
	memset(&p, 0, sizeof p);
	if (!lib.query_port(ctx, 1, &p)) {
		out->max_msg = p.max_msg_sz;
		out->link_layer = p.link_layer;
		out->port_state = p.state;
		out->active_mtu = 128 << p.active_mtu;
		out->max_mtu = 128 << p.max_mtu;
	}
	return 0;
}

int rc_devices(struct rc_device *out, int n)
{
	int count = 0, i;
	struct ibv_context **list;

	errno = 0;
	if (!(list = lib.rdma_get_devices(&count)))
		return errno == 0 || errno == ENOENT || errno == ENOSYS ? -ENODEV : -errno;
	for (i = 0; i < count && i < n; i++)
		if (rc_query(list[i], &out[i]))
			memset(&out[i], 0, sizeof out[i]);
	lib.rdma_free_devices(list);
	return count;
}

int rc_device_names(char *names, size_t size)
{
	int count = 0, i;
	size_t used = 0;
	struct ibv_device **list;

	errno = 0;
	if (!(list = lib.ibv_get_device_list(&count)))
		return fail();
	names[0] = 0;
	for (i = 0; i < count; i++) {
		const char *name = lib.ibv_get_device_name(list[i]);
		if (used + strlen(name) + 2 > size)
			break;
		used += snprintf(names + used, size - used, "%s%s", i ? " " : "", name);
	}
	lib.ibv_free_device_list(list);
	return count;
}

int rc_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return fail();
	return 0;
}

int rc_channel(struct rdma_event_channel **out, int *fd)
{
	struct rdma_event_channel *ch;
	int rc;

	errno = 0;
	if (!(ch = lib.rdma_create_event_channel()))
		return fail();
	if ((rc = rc_nonblock(ch->fd))) {
		lib.rdma_destroy_event_channel(ch);
		return rc;
	}
	*out = ch;
	*fd = ch->fd;
	return 0;
}

void rc_channel_free(struct rdma_event_channel *ch) { lib.rdma_destroy_event_channel(ch); }

int rc_next(struct rdma_event_channel *ch, uint64_t next, struct rc_event *out)
{
	struct rdma_cm_event *ev;

	errno = 0;
	if (lib.rdma_get_cm_event(ch, &ev))
		return fail();
	memset(out, 0, offsetof(struct rc_event, private_data));
	out->type = ev->event;
	out->status = ev->status;
	out->id = ev->id;
	switch (ev->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		out->listen = (uint64_t)(uintptr_t)ev->listen_id->context;
		ev->id->context = (void *)(uintptr_t)next;
		// fall through
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DISCONNECTED:
		out->has_param = 1;
		out->responder_resources = ev->param.conn.responder_resources;
		out->initiator_depth = ev->param.conn.initiator_depth;
		out->retry_count = ev->param.conn.retry_count;
		out->rnr_retry_count = ev->param.conn.rnr_retry_count;
		if (ev->param.conn.private_data && ev->param.conn.private_data_len) {
			out->private_len = ev->param.conn.private_data_len;
			memcpy(out->private_data, ev->param.conn.private_data, out->private_len);
		}
		break;
	default:
		break;
	}
	out->token = (uint64_t)(uintptr_t)ev->id->context;
	lib.rdma_ack_cm_event(ev);
	return 0;
}

int rc_id(struct rdma_event_channel *ch, uint64_t token, struct rdma_cm_id **out)
{
	errno = 0;
	return lib.rdma_create_id(ch, out, (void *)(uintptr_t)token, RDMA_PS_TCP) ? fail() : 0;
}

void rc_id_free(struct rdma_cm_id *id) { lib.rdma_destroy_id(id); }

int rc_bind(struct rdma_cm_id *id, void *addr, int backlog)
{
	errno = 0;
	if (lib.rdma_bind_addr(id, addr))
		return fail();
	return lib.rdma_listen(id, backlog) ? fail() : 0;
}

int rc_resolve_addr(struct rdma_cm_id *id, void *addr, int ms)
{
	errno = 0;
	return lib.rdma_resolve_addr(id, NULL, addr, ms) ? fail() : 0;
}

int rc_resolve_route(struct rdma_cm_id *id, int ms)
{
	errno = 0;
	return lib.rdma_resolve_route(id, ms) ? fail() : 0;
}

void rc_addr(struct rdma_cm_id *id, int peer, void *out)
{
	memcpy(out, peer ? rdma_get_peer_addr(id) : rdma_get_local_addr(id), sizeof(struct sockaddr_in6));
}

uint16_t rc_port(struct rdma_cm_id *id) { return ntohs(lib.rdma_get_src_port(id)); }
struct ibv_context *rc_context(struct rdma_cm_id *id) { return id->verbs; }
int rc_port_num(struct rdma_cm_id *id) { return id->port_num; }

int rc_create(struct rc_conn *c, int send_depth, int recv_depth, int sge)
{
	struct ibv_qp_init_attr a;
	int rc;

	errno = 0;
	if (!(c->pd = lib.ibv_alloc_pd(c->id->verbs)))
		goto failed;
	if (!(c->channel = lib.ibv_create_comp_channel(c->id->verbs)))
		goto failed;
	if ((rc = rc_nonblock(c->channel->fd)))
		goto failed;
	if (!(c->sends = lib.ibv_create_cq(c->id->verbs, send_depth, NULL, c->channel, 0)))
		goto failed;
	if (!(c->recvs = lib.ibv_create_cq(c->id->verbs, recv_depth, NULL, c->channel, 0)))
		goto failed;
	memset(&a, 0, sizeof a);
	a.send_cq = c->sends;
	a.recv_cq = c->recvs;
	a.qp_type = IBV_QPT_RC;
	a.cap.max_send_wr = send_depth;
	a.cap.max_recv_wr = recv_depth;
	a.cap.max_send_sge = sge;
	a.cap.max_recv_sge = 1;
	if (lib.rdma_create_qp(c->id, c->pd, &a))
		goto failed;
	c->qp = c->id->qp;
	return 0;
failed:
	rc = fail();
	rc_destroy(c);
	return rc;
}

void rc_destroy_qp(struct rc_conn *c)
{
	if (c->qp)
		lib.rdma_destroy_qp(c->id);
	c->qp = NULL;
}

int rc_destroy(struct rc_conn *c)
{
	int rc = 0, r;

	rc_destroy_qp(c);
	if (c->sends && (r = lib.ibv_destroy_cq(c->sends)))
		rc = -r;
	if (c->recvs && (r = lib.ibv_destroy_cq(c->recvs)))
		rc = -r;
	c->sends = c->recvs = NULL;
	if (c->channel && (r = lib.ibv_destroy_comp_channel(c->channel)))
		rc = -r;
	c->channel = NULL;
	if (c->pd && (r = lib.ibv_dealloc_pd(c->pd)))
		rc = -r;
	c->pd = NULL;
	return rc;
}

int rc_connect(struct rdma_cm_id *id, void *data, int len, int rr, int depth, int retry, int rnr, int accept)
{
	struct rdma_conn_param p;

	memset(&p, 0, sizeof p);
	p.private_data = len ? data : NULL;
	p.private_data_len = len;
	p.responder_resources = rr;
	p.initiator_depth = depth;
	p.flow_control = 1;
	p.retry_count = retry;
	p.rnr_retry_count = rnr;
	errno = 0;
	return (accept ? lib.rdma_accept(id, &p) : lib.rdma_connect(id, &p)) ? fail() : 0;
}

int rc_reject(struct rdma_cm_id *id, void *data, int len)
{
	errno = 0;
	return lib.rdma_reject(id, len ? data : NULL, len) ? fail() : 0;
}

int rc_disconnect(struct rdma_cm_id *id)
{
	errno = 0;
	return lib.rdma_disconnect(id) ? fail() : 0;
}

int rc_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr a;

	if (!qp) // destroyed; what is left in the completion queue has come late
		return 0;
	memset(&a, 0, sizeof a);
	a.qp_state = IBV_QPS_ERR;
	return -lib.ibv_modify_qp(qp, &a, IBV_QP_STATE);
}

int rc_qp_info(struct ibv_qp *qp, uint32_t *num, uint32_t *dest, int *mtu, int *sgid_index, int *rd, int *max_rd)
{
	struct ibv_qp_attr a;
	struct ibv_qp_init_attr i;
	int rc;

	memset(&a, 0, sizeof a);
	*num = qp->qp_num;
	rc = lib.ibv_query_qp(qp, &a, IBV_QP_DEST_QPN | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MAX_QP_RD_ATOMIC, &i);
	if (rc)
		return -rc;
	*dest = a.dest_qp_num;
	*mtu = a.path_mtu ? 128 << a.path_mtu : 0;
	*sgid_index = a.ah_attr.is_global ? a.ah_attr.grh.sgid_index : -1;
	*rd = a.max_dest_rd_atomic;
	*max_rd = a.max_rd_atomic;
	return 0;
}

int rc_reg(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova, int access, struct ibv_mr **out)
{
	errno = 0;
	if (iova == (uint64_t)(uintptr_t)addr)
		*out = lib.reg_mr(pd, addr, len, access);
	else if (lib.reg_mr_iova2)
		*out = lib.reg_mr_iova2(pd, addr, len, iova, access);
	else if (lib.reg_mr_iova)
		*out = lib.reg_mr_iova(pd, addr, len, iova, access);
	else
		return -EOPNOTSUPP;
	return *out ? 0 : fail();
}

int rc_dereg(struct ibv_mr *mr) { return -lib.ibv_dereg_mr(mr); }

int rc_window(struct ibv_pd *pd, struct ibv_mw **out)
{
	errno = 0;
	*out = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	return *out ? 0 : fail();
}

int rc_window_free(struct ibv_mw *mw) { return -ibv_dealloc_mw(mw); }

// How many requests go to the device in one list.
enum { BATCH = 64 };

int rc_post(struct ibv_qp *qp, struct rc_wr *in, int n, struct ibv_sge *sge, int *done)
{
	struct ibv_send_wr wr[BATCH], *bad;

	for (*done = 0; *done < n;) {
		int i, rc, k = n - *done < BATCH ? n - *done : BATCH;
		memset(wr, 0, k * sizeof wr[0]);
		for (i = 0; i < k; i++) {
			struct rc_wr *r = &in[*done + i];
			wr[i].wr_id = r->wr_id;
			wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
			wr[i].sg_list = &sge[r->sge];
			wr[i].num_sge = r->num_sge;
			wr[i].opcode = r->opcode;
			wr[i].send_flags = r->flags;
			switch (r->opcode) {
			case IBV_WR_SEND_WITH_INV:
				// libsiw takes the handle from here
				wr[i].wr.rdma.rkey = r->rkey;
				// fall through
			case IBV_WR_LOCAL_INV:
				wr[i].invalidate_rkey = r->rkey;
				break;
			case IBV_WR_RDMA_WRITE:
			case IBV_WR_RDMA_READ:
				wr[i].wr.rdma.remote_addr = r->remote;
				wr[i].wr.rdma.rkey = r->rkey;
				break;
			case IBV_WR_BIND_MW:
				wr[i].bind_mw.mw = r->mw;
				wr[i].bind_mw.rkey = r->rkey;
				wr[i].bind_mw.bind_info.mr = r->mr;
				wr[i].bind_mw.bind_info.addr = r->bind_addr;
				wr[i].bind_mw.bind_info.length = r->bind_len;
				wr[i].bind_mw.bind_info.mw_access_flags = r->access;
				// rxe takes the handle that is to be replaced from
				// here, so that one bind goes at a time.
				k = i + 1;
				wr[i].next = NULL;
				break;
			}
		}
		bad = NULL;
		if ((rc = ibv_post_send(qp, wr, &bad))) {
			*done += bad ? bad - wr : 0;
			return rc < 0 ? rc : -rc;
		}
		*done += k;
		if (wr[k - 1].opcode == IBV_WR_BIND_MW)
			wr[k - 1].bind_mw.mw->rkey = wr[k - 1].bind_mw.rkey;
	}
	return 0;
}

int rc_post_recv(struct ibv_qp *qp, uint64_t first, struct ibv_sge *sge, int n, int *done)
{
	struct ibv_recv_wr wr[BATCH], *bad;

	for (*done = 0; *done < n;) {
		int i, rc, k = n - *done < BATCH ? n - *done : BATCH;
		memset(wr, 0, k * sizeof wr[0]);
		for (i = 0; i < k; i++) {
			wr[i].wr_id = first + *done + i;
			wr[i].next = i + 1 < k ? &wr[i + 1] : NULL;
			wr[i].sg_list = &sge[*done + i];
			wr[i].num_sge = sge[*done + i].length ? 1 : 0;
		}
		bad = NULL;
		if ((rc = ibv_post_recv(qp, wr, &bad))) {
			*done += bad ? bad - wr : 0;
			return rc < 0 ? rc : -rc;
		}
		*done += k;
	}
	return 0;
}

int rc_poll(struct rc_conn *c, struct ibv_wc *wc, int n)
{
	int sends, recvs;

	if ((sends = ibv_poll_cq(c->sends, n, wc)) < 0)
		return sends;
	if ((recvs = ibv_poll_cq(c->recvs, n - sends, wc + sends)) < 0)
		return sends ? sends : recvs;
	return sends + recvs;
}

int rc_notify(struct rc_conn *c, int sends)
{
	int rc = ibv_req_notify_cq(c->recvs, 0);

	if (!rc && sends)
		rc = ibv_req_notify_cq(c->sends, 0);
	return -rc;
}

int rc_notify_sends(struct rc_conn *c) { return -ibv_req_notify_cq(c->sends, 0); }

int rc_cq_event(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *context;

	errno = 0;
	if (lib.ibv_get_cq_event(ch, &cq, &context))
		return fail();
	lib.ibv_ack_cq_events(cq, 1);
	return 0;
}

int rc_async_fd(struct ibv_context *ctx) { return ctx->async_fd; }

int rc_async_next(struct ibv_context *ctx, struct rc_async *out)
{
	struct ibv_async_event ev;

	errno = 0;
	if (lib.ibv_get_async_event(ctx, &ev))
		return fail();
	out->type = ev.event_type;
	out->qp = NULL;
	switch (ev.event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		out->qp = ev.element.qp;
		break;
	default:
		break;
	}
	lib.ibv_ack_async_event(&ev);
	return 0;
}
