//! Blocking clients: that of this project, and another implementation of varlink.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use shiftwork_client::{Client, DESCRIPTION, Error, Failure, Reservation};
use shiftwork_daemon::socket::SocketLimits;
use shiftwork_model::Span;
use varlink::{Connection, OrgVarlinkServiceClient, OrgVarlinkServiceInterface as _};

use crate::echo_service::EchoService;
use crate::test_server::TestServer;

/// Sets the flag when dropped, also after a panic.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Serves while these calls are made.
fn while_serving(calls: impl FnOnce(&Path) + Send) -> EchoService {
    let mut test = TestServer::new(SocketLimits::default());
    let path = test.path();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _over = SetOnDrop(&over);
            calls(&path);
        });
        while !over.load(Ordering::Acquire) {
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: 1_000_000,
            };
            let mut polled = [PollFd::new(&test.server, PollFlags::IN)];
            poll(&mut polled, Some(&pause)).unwrap();
            test.serve();
        }
    });
    test.echo
}

#[test]
fn client_of_this_project_gets_replies() {
    let echo = while_serving(|path| {
        let mut client = Client::connect(path).unwrap();
        let reservation = Reservation::new(Span::from_ms(1), Span::from_ms(10));
        let admitted = client.admit("imu", Some(7), &reservation).unwrap();
        assert_eq!((admitted.task, admitted.guarantee.as_str()), (7, "imu"));
        assert_eq!(client.change(7, &reservation).unwrap(), "hard");
        client.dismiss(7).unwrap();
        assert_eq!(client.observe(None).unwrap(), std::process::id());
        assert_eq!(client.record(Some(2e7)).unwrap().record.len(), 20_000_000);
        assert_eq!(client.explain(None).unwrap().len(), 1);
        for failure in [
            client.status().map(drop).unwrap_err(),
            client.end_observation(1).map(drop).unwrap_err(),
        ] {
            assert!(
                matches!(failure, Failure::Agent(Error::Missing { .. })),
                "{failure}"
            );
        }
    });
    assert_eq!(echo.dismissed, [7]);
}

#[test]
fn other_varlink_implementation_reads_service_info() {
    while_serving(|path| {
        let address = format!("unix:{}", path.display());
        let connection = Connection::with_address(&address).unwrap();
        let mut service = OrgVarlinkServiceClient::new(connection);
        let information = service.get_info().unwrap();
        assert_eq!(information.product, "shiftwork daemon");
        assert_eq!(
            information.interfaces,
            ["org.varlink.service", "org.shiftwork.Agent"]
        );
        let described = service
            .get_interface_description("org.shiftwork.Agent")
            .unwrap();
        assert_eq!(described.description.as_deref(), Some(DESCRIPTION));
        let missing = service
            .get_interface_description("org.example")
            .unwrap_err();
        assert!(
            matches!(missing.kind(), varlink::ErrorKind::InterfaceNotFound(name) if name == "org.example"),
            "{missing:?}"
        );
    });
}
