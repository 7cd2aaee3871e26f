"""`makespan serve`: a page in the browser that asks what `makespan report` answers."""

import signal
import webbrowser

import click

from makespan.cli.help_page import HelpCommand, examples
from makespan.cli.parameters import SECONDS, SIZE
from makespan.cli.running import DONE
from makespan.host.errors import InputError
from makespan.host.tool import temporary_folder
from makespan.many.serve import PageServer, ServeJobs, ServeLimits, is_loopback

_LEAST_MEMORY_BYTES = 1 << 30


@click.command("serve", cls=HelpCommand, epilog=examples("makespan serve --open"))
@click.option("--host", default="127.0.0.1", show_default=True, help="the address to listen at")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8127, show_default=True, help="the port; 0 takes a free one"
)
@click.option("--shared", is_flag=True, help="let other machines in, where --host is an address that they can reach")
@click.option("--open", "opens", is_flag=True, help="open the page in the browser")
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="questions that run at once")
@click.option("--waiting", type=click.IntRange(0, 10_000), default=20, show_default=True, help="and that wait")
@click.option("--time-limit", type=SECONDS, default=60.0, show_default=True, help="the longest of a question")
@click.option("--memory", type=SIZE, default="4GiB", show_default=True, help="of the process of a question")
def command(
    host: str, port: int, shared: bool, opens: bool, jobs: int, waiting: int, time_limit: float, memory: int
) -> int:
    """Show a page on this machine: paste PTX, CUDA or a string, and see the worst case, its proof and its schedule.

    Each question is a process of 'makespan report' with limits. Ctrl-C ends the page and all of them.
    """
    # There is no login: to open the page to a network must be said twice.
    if not (shared or is_loopback(host)):
        raise InputError(
            f"--host {host} lets other machines in: whoever reaches it may use the time and memory of this one, within"
            " the limits of --jobs, --time-limit and --memory; nobody is asked for a password, nothing is encrypted,"
            " and CUDA is not compiled; give --shared, too, if that is what you want"
        )
    if memory < _LEAST_MEMORY_BYTES:
        raise InputError("--memory: a question needs 1GiB to load its libraries")
    with temporary_folder() as folder:
        running = ServeJobs(folder, ServeLimits(jobs, waiting, time_limit, memory))
        try:
            with _listening(host, port, running, shared=shared) as server:
                for number in (signal.SIGINT, signal.SIGTERM):  # one that is ignored would be by all children, too
                    signal.signal(number, signal.default_int_handler)
                click.echo(f"{server.url} (Ctrl-C ends it)")
                if opens:
                    webbrowser.open(server.url)
                server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            running.close()
    return DONE


def _listening(host: str, port: int, running: ServeJobs, *, shared: bool) -> PageServer:
    try:
        return PageServer(host, port, running, shared=shared)
    except OSError as error:
        raise InputError(
            f"cannot listen at {host}, port {port}: {error.strerror or error}; give another --port, or 0 for a free one"
        ) from None
